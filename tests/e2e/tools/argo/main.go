// Three things that Argo Workflows does, on its own packages. The argo program itself cannot be built from the published
// module, which lacks the pages of its server.
//
//	argo lint FILE...                     what `argo lint --offline` says
//	argo expand FILE [KEY=VALUE]          the manifests of a WorkflowTemplate as the executor reads them, one a line
//	argo run FILE TEMPLATE [KEY=VALUE]    what the executor does in the pod of a resource template
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-workflows/v3/cmd/argo/lint"
	"github.com/argoproj/argo-workflows/v3/pkg/apiclient"
	wfv1 "github.com/argoproj/argo-workflows/v3/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v3/util/template"
	"github.com/argoproj/argo-workflows/v3/workflow/common"
	"github.com/argoproj/argo-workflows/v3/workflow/executor"
)

func main() {
	err := fmt.Errorf("usage: argo lint FILE... | argo expand FILE [KEY=VALUE...] | argo run FILE TEMPLATE [KEY=VALUE...]")
	if len(os.Args) > 2 && os.Args[1] == "lint" {
		err = lintFiles(os.Args[2:])
	} else if len(os.Args) > 2 && os.Args[1] == "expand" {
		err = expand(os.Args[2], os.Args[3:])
	} else if len(os.Args) > 3 && os.Args[1] == "run" {
		err = run(os.Args[2], os.Args[3], os.Args[4:])
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

// expand prints the manifests of all resource templates.
func expand(file string, arguments []string) error {
	templates, err := read(file)
	if err != nil {
		return err
	}
	for _, one := range templates {
		if one.Resource == nil || one.Resource.Manifest == "" {
			continue
		}
		final, err := substituted(one, arguments)
		if err != nil {
			return err
		}
		manifest, err := yaml.YAMLToJSON([]byte(final.Resource.Manifest))
		if err != nil {
			return err
		}
		fmt.Println(string(manifest))
	}
	return nil
}

// run does what the executor does in the pod of one resource template, against the cluster of the kubeconfig.
func run(file string, name string, arguments []string) error {
	templates, err := read(file)
	if err != nil {
		return err
	}
	for _, one := range templates {
		if one.Name == name {
			final, err := substituted(one, arguments)
			if err != nil {
				return err
			}
			return execute(final)
		}
	}
	return fmt.Errorf("no template %s", name)
}

func execute(final *wfv1.Template) error {
	manifest, err := os.CreateTemp("", "manifest")
	if err != nil {
		return err
	}
	defer os.Remove(manifest.Name())
	if _, err := manifest.WriteString(final.Resource.Manifest); err != nil {
		return err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	worker := executor.WorkflowExecutor{Template: *final, ClientSet: clients, RESTClient: clients.RESTClient()}
	namespace, resource, link, err := worker.ExecResource(final.Resource.Action, manifest.Name(), final.Resource.Flags)
	if err != nil || final.Resource.Action == "delete" {
		return err
	}
	return worker.WaitResource(context.Background(), namespace, resource, link)
}

func read(file string) ([]wfv1.Template, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var workflow wfv1.WorkflowTemplate
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		return nil, err
	}
	return workflow.Spec.Templates, nil
}

// substituted is a template as the controller makes it: once for the inputs, and once more in the pod that carries it.
func substituted(one wfv1.Template, arguments []string) (*wfv1.Template, error) {
	global := common.Parameters{"workflow.name": "w-name", "workflow.uid": "w-uid"}
	given := map[string]string{}
	for _, argument := range arguments {
		key, value, _ := strings.Cut(argument, "=")
		if _, known := global[key]; known {
			global[key] = value
		} else {
			given[key] = value
		}
	}
	for index, input := range one.Inputs.Parameters {
		one.Inputs.Parameters[index].Value = wfv1.AnyStringPtr(given[input.Name])
	}
	made, err := common.SubstituteParams(&one, global, common.Parameters{})
	if err != nil {
		return nil, err
	}
	carried, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	last, err := template.Replace(string(carried), global, true)
	if err != nil {
		return nil, err
	}
	final := &wfv1.Template{}
	return final, json.Unmarshal([]byte(last), final)
}
