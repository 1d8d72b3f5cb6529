// Two things that Argo Workflows does, on its own packages, without a cluster. The argo program itself cannot be built
// from the published module, which lacks the pages of its server.
//
//	argo lint FILE...             what `argo lint --offline` says
//	argo expand FILE [KEY=VALUE]  the manifests of a WorkflowTemplate as the executor reads them, one a line
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-workflows/v3/cmd/argo/lint"
	"github.com/argoproj/argo-workflows/v3/pkg/apiclient"
	wfv1 "github.com/argoproj/argo-workflows/v3/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v3/util/template"
	"github.com/argoproj/argo-workflows/v3/workflow/common"
)

func main() {
	err := fmt.Errorf("usage: argo lint FILE... | argo expand FILE [KEY=VALUE...]")
	if len(os.Args) > 2 && os.Args[1] == "lint" {
		err = lintFiles(os.Args[2:])
	} else if len(os.Args) > 2 && os.Args[1] == "expand" {
		err = expand(os.Args[2], os.Args[3:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func lintFiles(files []string) error {
	ctx, client, err := apiclient.NewClientFromOpts(apiclient.Opts{
		AuthSupplier: func() string { return "" },
		Offline:      true,
		OfflineFiles: files,
		Context:      context.Background(),
	})
	if err != nil {
		return err
	}
	kinds := []string{"workflows", "workflowtemplates", "cronworkflows"}
	return lint.RunLint(ctx, client, kinds, "simple", true, lint.LintOptions{Files: files, Strict: true, Printer: os.Stdout})
}

// expand substitutes as the controller does: once for the inputs, and once more in the pod that carries the template.
func expand(file string, arguments []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var workflow wfv1.WorkflowTemplate
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		return err
	}
	global := common.Parameters{"workflow.name": "w-name", "workflow.uid": "w-uid"}
	given := map[string]string{}
	for _, argument := range arguments {
		key, value, _ := strings.Cut(argument, "=")
		given[key] = value
	}
	for _, one := range workflow.Spec.Templates {
		if one.Resource == nil || one.Resource.Manifest == "" {
			continue
		}
		for index, input := range one.Inputs.Parameters {
			one.Inputs.Parameters[index].Value = wfv1.AnyStringPtr(given[input.Name])
		}
		made, err := common.SubstituteParams(&one, global, common.Parameters{})
		if err != nil {
			return err
		}
		carried, err := json.Marshal(made)
		if err != nil {
			return err
		}
		last, err := template.Replace(string(carried), global, true)
		if err != nil {
			return err
		}
		var final wfv1.Template
		if err := json.Unmarshal([]byte(last), &final); err != nil {
			return err
		}
		read, err := yaml.YAMLToJSON([]byte(final.Resource.Manifest))
		if err != nil {
			return err
		}
		fmt.Println(string(read))
	}
	return nil
}
