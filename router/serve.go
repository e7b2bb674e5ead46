package router

import (
	"log"
	"net/http"
	"time"
)

// NewServer makes the HTTP server that agents talk to. There is no limit on
// how long a request or an answer takes: a model may think for an hour.
func NewServer(h http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       10 * time.Minute,
		MaxHeaderBytes:    256 << 10,
		ErrorLog:          errors,
	}
}
