// kubelet plays the kubelet's side of the device plugin API for one plugin, and says on stdout, as JSON, what came of it.
//
// It starts the program that stands behind `--`, takes its registrations, reads the first list of devices of each
// resource, and asks for one device and for two of them as the kubelet does for a container. Then it ends the program.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Resource is what a plugin offered under one name.
type Resource struct {
	Devices []string       `json:"devices"`
	One     map[string]any `json:"one,omitempty"`
	Two     string         `json:"two,omitempty"` // "ok", or why two devices are refused
	Error   string         `json:"error,omitempty"`
}

// Result is what became of the program. Exit is nil where it still ran when its time was over.
type Result struct {
	Exit      *int                 `json:"exit"`
	Resources map[string]*Resource `json:"resources"`
	Log       string               `json:"log"`
}

type registry struct {
	api.UnimplementedRegistrationServer
	seen chan *api.RegisterRequest
}

func (r *registry) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	r.seen <- request
	return &api.Empty{}, nil
}

func main() {
	wait := flag.Duration("wait", 8*time.Second, "how long the program has to offer something")
	settle := flag.Duration("settle", time.Second, "how long to wait for a further resource")
	flag.Parse()
	if err := play(flag.Args(), *wait, *settle); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func play(command []string, wait, settle time.Duration) error {
	socket := api.KubeletSocket
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	kubelet := &registry{seen: make(chan *api.RegisterRequest, 64)}
	api.RegisterRegistrationServer(server, kubelet)
	go server.Serve(listener)
	defer server.Stop()

	var log bytes.Buffer
	plugin := exec.Command(command[0], command[1:]...)
	plugin.Stdout, plugin.Stderr = &log, &log
	if err := plugin.Start(); err != nil {
		return err
	}
	ended := make(chan int, 1)
	go func() {
		plugin.Wait()
		ended <- plugin.ProcessState.ExitCode()
	}()

	result := Result{Resources: map[string]*Resource{}}
	timer := time.After(wait)
collect:
	for {
		select {
		case request := <-kubelet.seen:
			result.Resources[request.ResourceName] = ask(filepath.Join(filepath.Dir(socket), request.Endpoint))
			timer = time.After(settle)
		case code := <-ended:
			result.Exit = &code
			break collect
		case <-timer:
			break collect
		}
	}
	if result.Exit == nil {
		plugin.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(3 * time.Second):
			plugin.Process.Kill()
			<-ended
		}
	}
	result.Log = log.String()
	return json.NewEncoder(os.Stdout).Encode(result)
}

// ask reads the devices behind a plugin's socket, and asks for one and for two of them.
func ask(socket string) *Resource {
	found := &Resource{}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		found.Error = err.Error()
		return found
	}
	defer connection.Close()
	client := api.NewDevicePluginClient(connection)
	stream, err := client.ListAndWatch(ctx, &api.Empty{})
	if err != nil {
		found.Error = err.Error()
		return found
	}
	list, err := stream.Recv()
	if err != nil {
		found.Error = err.Error()
		return found
	}
	for _, device := range list.Devices {
		found.Devices = append(found.Devices, device.ID)
	}
	sort.Strings(found.Devices)
	if len(found.Devices) == 0 {
		return found
	}
	answer, err := allocate(ctx, client, found.Devices[:1])
	if err != nil {
		found.Error = err.Error()
		return found
	}
	found.One = answer
	if len(found.Devices) > 1 {
		found.Two = "ok"
		if _, err := allocate(ctx, client, found.Devices[:2]); err != nil {
			found.Two = err.Error()
		}
	}
	return found
}

// allocate asks for devices for one container; what it would get is returned as plain data.
func allocate(ctx context.Context, client api.DevicePluginClient, ids []string) (map[string]any, error) {
	answer, err := client.Allocate(ctx, &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil {
		return nil, err
	}
	container := answer.ContainerResponses[0]
	found := map[string]any{"envs": container.Envs, "annotations": container.Annotations}
	var devices, mounts, cdi []string
	for _, each := range container.Devices {
		devices = append(devices, each.ContainerPath)
	}
	for _, each := range container.Mounts {
		mounts = append(mounts, each.HostPath+":"+each.ContainerPath)
	}
	for _, each := range container.CdiDevices {
		cdi = append(cdi, each.Name)
	}
	found["devices"], found["mounts"], found["cdi"] = devices, mounts, cdi
	return found, nil
}
