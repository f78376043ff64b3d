// Applies folders of manifests server-side as Argo CD does, one after the other, and tells what Argo CD's diff engine says
// of each object afterwards, with the API server's own word on what an apply would change (ServerSideDiff=true).
//
//	argocd KUBECONFIG NAME FOLDER...
//
// prints a JSON object a line: subject, modified, and for a difference both objects.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kube-openapi/pkg/util/proto"
	"sigs.k8s.io/yaml"
)

const (
	manager  = "argocd-controller"
	tracking = "argocd.argoproj.io/tracking-id"
)

type verdict struct {
	Subject   string          `json:"subject"`
	Modified  bool            `json:"modified"`
	Live      json.RawMessage `json:"live,omitempty"`
	Predicted json.RawMessage `json:"predicted,omitempty"`
}

type cluster struct {
	discovery discovery.DiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	objects   dynamic.Interface
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, name string, folders []string) error {
	api, err := newCluster(kubeconfig)
	if err != nil {
		return err
	}
	var all []*unstructured.Unstructured
	for _, folder := range folders {
		objects, err := read(folder, name)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if _, err := api.apply(ctx, object, false); err != nil {
				return fmt.Errorf("%s: %w", subject(object), err)
			}
		}
		all = append(all, objects...)
	}
	schema, err := api.discovery.OpenAPISchema()
	if err != nil {
		return err
	}
	models, err := proto.NewOpenAPIData(schema)
	if err != nil {
		return err
	}
	parser, err := managedfields.NewGVKParser(models, false)
	if err != nil {
		return err
	}
	tell := json.NewEncoder(os.Stdout)
	for _, object := range all {
		client, err := api.client(object)
		if err != nil {
			return err
		}
		live, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		options := []diff.Option{
			diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(api), diff.WithManager(manager), diff.WithGVKParser(parser),
		}
		result, err := diff.Diff(object.DeepCopy(), live, options...)
		if err != nil {
			return fmt.Errorf("%s: %w", subject(object), err)
		}
		found := verdict{Subject: subject(object), Modified: result.Modified}
		if result.Modified {
			found.Live, found.Predicted = result.NormalizedLive, result.PredictedLive
		}
		if err := tell.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

// Run is what the engine asks for: the object as it would be after an apply.
func (c *cluster) Run(ctx context.Context, object *unstructured.Unstructured, _ string) (string, error) {
	applied, err := c.apply(ctx, object, true)
	if err != nil {
		return "", err
	}
	text, err := applied.MarshalJSON()
	return string(text), err
}

func newCluster(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	config.WarningHandler = nil
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{found, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)), objects}, nil
}

// client serves the object's kind. A kind that was defined a moment ago may not be listed yet.
func (c *cluster) client(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	for end := time.Now().Add(time.Minute); meta.IsNoMatchError(err) && time.Now().Before(end); {
		time.Sleep(200 * time.Millisecond)
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.objects.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return c.objects.Resource(mapping.Resource), nil
}

func (c *cluster) apply(ctx context.Context, object *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	client, err := c.client(object)
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return client.Apply(ctx, object.GetName(), object, options)
}

// read gives the objects in the files of a folder, namespaces first, each with the annotation by which Argo CD tracks it.
func read(folder, name string) ([]*unstructured.Unstructured, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var first, rest []*unstructured.Unstructured
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = name + ":" + subject(object)
		object.SetAnnotations(annotations)
		if object.GetKind() == "Namespace" {
			first = append(first, object)
		} else {
			rest = append(rest, object)
		}
	}
	return append(first, rest...), nil
}

func subject(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	return fmt.Sprintf("%s/%s:%s/%s", kind.Group, kind.Kind, object.GetNamespace(), object.GetName())
}
