// Argo CD's controller and repository server with the cache they share, as one program. The name by which it is
// called decides which of them it is.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/cobra"

	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	applicationset "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
	askpass "github.com/argoproj/argo-cd/v3/cmd/argocd-git-ask-pass/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"

	_ "k8s.io/client-go/plugin/pkg/client/auth/exec"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"argocd-application-controller":    controller.NewCommand,
		"argocd-applicationset-controller": applicationset.NewCommand,
		"argocd-git-ask-pass":              askpass.NewCommand,
		"argocd-repo-server":               reposerver.NewCommand,
		"redis-server":                     cache,
	}
	name := filepath.Base(os.Args[0])
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: not a part of Argo CD\n", name)
		os.Exit(2)
	}
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}

// cache keeps what the parts of Argo CD tell each other, in memory.
func cache() *cobra.Command {
	return &cobra.Command{
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			server := miniredis.NewMiniRedis()
			if err := server.StartAddr(args[0]); err != nil {
				return err
			}
			defer server.Close()
			stop := make(chan os.Signal, 1)
			signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
			// Its clock stands still by itself, and then nothing that is kept ever expires.
			clock := time.NewTicker(time.Second)
			defer clock.Stop()
			for {
				select {
				case <-clock.C:
					server.FastForward(time.Second)
				case <-stop:
					return nil
				}
			}
		},
	}
}
