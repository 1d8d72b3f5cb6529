// `argo lint --offline`, on the packages of the argo program. The program itself cannot be built from the published
// module, which lacks the pages of its server.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/argoproj/argo-workflows/v3/cmd/argo/lint"
	"github.com/argoproj/argo-workflows/v3/pkg/apiclient"
)

func main() {
	if len(os.Args) < 3 || os.Args[1] != "lint" {
		fmt.Fprintln(os.Stderr, "usage: argo lint FILE...")
		os.Exit(2)
	}
	files := os.Args[2:]
	ctx, client, err := apiclient.NewClientFromOpts(apiclient.Opts{
		AuthSupplier:         func() string { return "" },
		ClientConfigSupplier: nil,
		Offline:              true,
		OfflineFiles:         files,
		Context:              context.Background(),
	})
	if err == nil {
		kinds := []string{"workflows", "workflowtemplates", "cronworkflows"}
		err = lint.RunLint(ctx, client, kinds, "simple", true, lint.LintOptions{Files: files, Strict: true, Printer: os.Stdout})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
