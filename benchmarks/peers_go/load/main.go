// Command load posts one body to a webhook again and again, over connections that are kept: see ../../webhooks.py.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

func client(authority string, concurrency int) (*http.Client, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + authority)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool},
		MaxIdleConnsPerHost: concurrency,
		MaxConnsPerHost:     concurrency,
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}, nil
}

func post(client *http.Client, url string, body []byte) error {
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if !bytes.Contains(said, []byte(`"allowed":true`)) {
		return fmt.Errorf("%s: %s", answer.Status, said)
	}
	return nil
}

func run(url, authority string, body []byte, concurrency, requests int) ([]time.Duration, error) {
	client, err := client(authority, concurrency)
	if err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	times := make([][]time.Duration, concurrency)
	failures := make([]error, concurrency)
	for worker := range concurrency {
		group.Go(func() {
			for range requests / concurrency {
				began := time.Now()
				if failures[worker] = post(client, url, body); failures[worker] != nil {
					return
				}
				times[worker] = append(times[worker], time.Since(began))
			}
		})
	}
	group.Wait()
	return slices.Concat(times...), errors.Join(failures...)
}

func main() {
	url := flag.String("url", "", "the webhook")
	authority := flag.String("ca", "", "PEM of the authority")
	concurrency := flag.Int("concurrency", 1, "requests at the same time, each on its connection")
	requests := flag.Int("requests", 1000, "requests in all")
	flag.Parse()
	body, err := io.ReadAll(os.Stdin)
	began := time.Now()
	var times []time.Duration
	if err == nil {
		times, err = run(*url, *authority, body, *concurrency, *requests)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	wall := time.Since(began)
	slices.Sort(times)
	at := func(share float64) float64 { return float64(times[int(share*float64(len(times)-1))].Microseconds()) }
	json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"count": float64(len(times)), "wall_s": wall.Seconds(), "p50": at(0.5), "p99": at(0.99),
	})
}
