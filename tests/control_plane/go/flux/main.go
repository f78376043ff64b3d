// Applies folders of manifests as Flux's kustomize-controller does, one after the other, and tells what its library says
// of each object: when it is applied, when it is applied again, and when it is compared.
//
//	flux [-override MANAGER,...] KUBECONFIG NAME FOLDER...
//
// takes over the fields of each MANAGER, as kustomize-controller's --override-manager does, and
// prints a JSON object a line: pass ("apply", "again", "diff"), subject, action, and for a difference both objects.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

type verdict struct {
	Pass    string                     `json:"pass"`
	Subject string                     `json:"subject"`
	Action  string                     `json:"action"`
	Live    *unstructured.Unstructured `json:"live,omitempty"`
	Merged  *unstructured.Unstructured `json:"merged,omitempty"`
}

func main() {
	override := flag.String("override", "", "managers whose fields are taken over")
	flag.Parse()
	words := flag.Args()
	if err := run(context.Background(), words[0], words[1], words[2:], options(*override)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are those of kustomize-controller, with the managers whose fields it takes over.
func options(override string) ssa.ApplyOptions {
	found := ssa.DefaultApplyOptions()
	for _, name := range strings.FieldsFunc(override, func(r rune) bool { return r == ',' }) {
		manager := ssa.FieldManager{Name: name, ExactMatch: true, OperationType: metav1.ManagedFieldsOperationUpdate}
		found.Cleanup.FieldManagers = append(found.Cleanup.FieldManagers, manager)
	}
	return found
}

func run(ctx context.Context, kubeconfig, name string, folders []string, how ssa.ApplyOptions) error {
	manager, err := newManager(kubeconfig)
	if err != nil {
		return err
	}
	tell := json.NewEncoder(os.Stdout)
	var stages [][]*unstructured.Unstructured
	for _, folder := range folders {
		objects, err := read(folder)
		if err != nil {
			return err
		}
		manager.SetOwnerLabels(objects, name, "flux-system")
		stages = append(stages, objects)
	}
	for _, pass := range []string{"apply", "again"} {
		for _, objects := range stages {
			changes, err := manager.ApplyAllStaged(ctx, objects, how)
			if err != nil {
				return fmt.Errorf("%s: %w", pass, err)
			}
			for _, entry := range changes.Entries {
				if err := tell.Encode(verdict{Pass: pass, Subject: entry.Subject, Action: string(entry.Action)}); err != nil {
					return err
				}
			}
		}
	}
	for _, objects := range stages {
		for _, object := range objects {
			entry, live, merged, err := manager.Diff(ctx, object, ssa.DefaultDiffOptions())
			if err != nil {
				return fmt.Errorf("diff: %w", err)
			}
			found := verdict{Pass: "diff", Subject: entry.Subject, Action: string(entry.Action)}
			if entry.Action != ssa.UnchangedAction {
				found.Live, found.Merged = live, merged
			}
			if err := tell.Encode(found); err != nil {
				return err
			}
		}
	}
	return nil
}

func newManager(kubeconfig string) (*ssa.ResourceManager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Mapper: mapper})
	if err != nil {
		return nil, err
	}
	owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
	return ssa.NewResourceManager(api, polling.NewStatusPoller(api, mapper, polling.Options{}), owner), nil
}

// read gives the objects in the files of a folder, with what Flux makes of them before it applies them.
func read(folder string) ([]*unstructured.Unstructured, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		found, err := utils.ReadObjects(file)
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, found...)
	}
	return objects, normalize.UnstructuredList(objects)
}
