package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// countedConn counts the bytes that are sent to a client.
type countedConn struct {
	net.Conn
	sent atomic.Int64
}

func (c *countedConn) Write(bytes []byte) (int, error) {
	written, err := c.Conn.Write(bytes)
	c.sent.Add(int64(written))
	return written, err
}

type countingListener struct{ net.Listener }

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn}, nil
}

type connectionKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// connections are those of each client, by its User-Agent.
type connections struct {
	mu       sync.Mutex
	ofAgents map[string]map[*countedConn]struct{}
}

func (c *connections) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ofAgents = nil
}

// record notes which client a request's connection is of.
func (c *connections) record(request *http.Request) {
	conn, counted := request.Context().Value(connectionKey{}).(*countedConn)
	if !counted {
		return
	}
	agent := request.UserAgent()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ofAgents == nil {
		c.ofAgents = map[string]map[*countedConn]struct{}{}
	}
	if c.ofAgents[agent] == nil {
		c.ofAgents[agent] = map[*countedConn]struct{}{}
	}
	c.ofAgents[agent][conn] = struct{}{}
}

// sent is how many bytes each client got.
func (c *connections) sent() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := map[string]int64{}
	for agent, conns := range c.ofAgents {
		for conn := range conns {
			sent[agent] += conn.sent.Load()
		}
	}
	return sent
}
