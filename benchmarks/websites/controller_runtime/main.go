// part: main

// Command websites runs Websites with controller-runtime: a Website is a ConfigMap, a Deployment, a Service and a DNS
// record. DNS_URL is an environment variable.
package main

import (
	"flag"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"aioinformer.dev/benchmarks/websites/api"
	"aioinformer.dev/benchmarks/websites/controller"
)

func main() {
	port := flag.Int("webhook-port", 9443, "port of the webhook")
	cert := flag.String("tls-cert", "/certs/tls.crt", "certificate")
	key := flag.String("tls-key", "/certs/tls.key", "its key, in the same folder")
	metrics := flag.String("metrics-address", ":8080", "address of /metrics; 0 for none")
	probes := flag.String("probe-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*port, *cert, *key, *metrics, *probes); err != nil {
		ctrl.Log.Error(err, "the operator has failed")
		os.Exit(1)
	}
}

func run(port int, cert, key, metrics, probes string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: metrics},
		HealthProbeBindAddress: probes,
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: port, CertDir: filepath.Dir(cert), CertName: filepath.Base(cert), KeyName: filepath.Base(key),
		}),
	})
	if err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("webhook", manager.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	reconciler := &controller.Reconciler{
		Client: manager.GetClient(), Events: manager.GetEventRecorder("websites"), DNS: os.Getenv("DNS_URL"),
	}
	if err := reconciler.SetupWithManager(manager); err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	validator := &controller.Validator{Reader: manager.GetClient()}
	if err := validator.SetupWithManager(ctx, manager); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// part: end
