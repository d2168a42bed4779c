// Command webhook is controller-runtime's webhook server with one validating handler of pods: see ../../webhooks.py.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type validator struct{ decoder admission.Decoder }

func (v validator) Handle(_ context.Context, request admission.Request) admission.Response {
	var pod corev1.Pod
	if err := v.decoder.Decode(request, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if request.Operation == admissionv1.Create && pod.Spec.NodeName == "" {
		return admission.Denied("spec.nodeName: is required")
	}
	return admission.Allowed("")
}

func run(folder string, port int) error {
	ctrl.SetLogger(logr.Discard())
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: folder})
	server.Register("/validate", &admission.Webhook{Handler: validator{admission.NewDecoder(scheme.Scheme)}})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- server.Start(ctx) }()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for {
		select {
		case err := <-failed:
			return errors.Join(errors.New("the server has ended"), err)
		case <-time.After(10 * time.Millisecond):
		}
		if server.StartedChecker()(nil) == nil {
			break
		}
	}
	fmt.Printf("{\"url\":\"https://%s/validate\"}\n", address)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until its end
	return nil
}

func main() {
	folder := flag.String("certs", "", "folder of tls.crt and tls.key")
	port := flag.Int("port", 0, "port")
	flag.Parse()
	if err := run(*folder, *port); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
