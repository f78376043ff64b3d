// Reads an Ignition configuration from standard input, as machines do at their first boot, and prints what Ignition has against it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/coreos/ignition/v2/config"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	_, said, err := config.Parse(text)
	for _, entry := range said.Entries {
		fmt.Println(entry.String())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
