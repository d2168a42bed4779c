// Command kube-controller-manager runs the controllers: they empty namespaces, collect garbage and take finalizers off.
package main

import (
	"os"
	_ "time/tzdata" // for CronJob time zones, as upstream's main has it

	"aioinformer.dev/tests/kubernetes/internal/leash"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	leash.Hold()
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}
