// The part of Argo's executor that the pods of resource templates use, on its own packages. The program itself cannot be
// built from the published module, which lacks a file for Linux.
//
//	argoexec init                         keeps itself and the template for the main container
//	argoexec emissary ... -- COMMAND...   becomes the command
//	argoexec resource ACTION              acts on the template's object, waits for it, and reports that
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	wfv1 "github.com/argoproj/argo-workflows/v3/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v3/pkg/client/clientset/versioned"
	"github.com/argoproj/argo-workflows/v3/workflow/common"
	"github.com/argoproj/argo-workflows/v3/workflow/executor"
)

const templateFile = common.VarRunArgoPath + "/template"

func main() {
	err := fmt.Errorf("usage: argoexec init | argoexec emissary ... -- COMMAND... | argoexec resource ACTION")
	if len(os.Args) > 1 && os.Args[1] == "init" {
		err = keep()
	} else if end := slices.Index(os.Args, "--"); end > 0 && os.Args[1] == "emissary" && end+1 < len(os.Args) {
		err = become(os.Args[end+1:])
	} else if len(os.Args) > 2 && os.Args[1] == "resource" {
		err = resource(context.Background(), os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func keep() error {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.WriteFile(common.VarRunArgoPath+"/argoexec", program, 0o755); err != nil {
		return err
	}
	return os.WriteFile(templateFile, []byte(os.Getenv(common.EnvVarTemplate)), 0o644)
}

func become(command []string) error {
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, command, os.Environ())
}

func resource(ctx context.Context, action string) error {
	worker, err := worker()
	if err != nil {
		return err
	}
	worker.InitializeOutput(ctx)
	defer worker.FinalizeOutput(ctx)
	if err := worker.StageFiles(); err != nil {
		return err
	}
	namespace, name, link, err := worker.ExecResource(
		action, common.ExecutorResourceManifestPath, worker.Template.Resource.Flags,
	)
	if err != nil || action == "delete" {
		return err
	}
	return worker.WaitResource(ctx, namespace, name, link)
}

func worker() (executor.WorkflowExecutor, error) {
	var template wfv1.Template
	text, err := os.ReadFile(templateFile)
	if err != nil {
		return executor.WorkflowExecutor{}, err
	}
	if err := json.Unmarshal(text, &template); err != nil {
		return executor.WorkflowExecutor{}, err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return executor.WorkflowExecutor{}, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return executor.WorkflowExecutor{}, err
	}
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return executor.WorkflowExecutor{}, err
	}
	results := versioned.NewForConfigOrDie(config).ArgoprojV1alpha1().WorkflowTaskResults(string(namespace))
	return executor.NewExecutor(
		clients, results, clients.RESTClient(),
		os.Getenv(common.EnvVarPodName), types.UID(os.Getenv(common.EnvVarPodUID)),
		os.Getenv(common.EnvVarWorkflowName), types.UID(os.Getenv(common.EnvVarWorkflowUID)),
		os.Getenv(common.EnvVarNodeID), string(namespace),
		nil, template, false, time.Time{}, 0, 0,
	), nil
}
