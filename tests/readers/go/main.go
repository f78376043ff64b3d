// Reads a stream of YAML documents on stdin the way Kubernetes' clients do and prints one JSON document a line.
//
// A document that can't be read gives the line {"error": "why"}. With -v3 each document goes through go-yaml v3
// instead, the reader behind kustomize and so behind most GitOps engines: it has other rules for what a plain word is.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

func viaV3(document []byte) ([]byte, error) {
	var value any
	if err := yamlv3.Unmarshal(document, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func run(in io.Reader, out *bufio.Writer, toJSON func([]byte) ([]byte, error)) error {
	documents := yaml.NewYAMLReader(bufio.NewReaderSize(in, 1<<16))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		line, err := toJSON(document)
		if err != nil {
			if line, err = json.Marshal(map[string]string{"error": err.Error()}); err != nil {
				return err
			}
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
}

func main() {
	v3 := flag.Bool("v3", false, "read each document with go-yaml v3")
	flag.Parse()
	toJSON := sigsyaml.YAMLToJSON
	if *v3 {
		toJSON = viaV3
	}
	if err := run(os.Stdin, bufio.NewWriterSize(os.Stdout, 1<<16), toJSON); err != nil {
		fmt.Fprintln(os.Stderr, "yaml-reader:", err)
		os.Exit(1)
	}
}
