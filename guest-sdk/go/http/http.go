// Package http makes requests to HTTP endpoints. Any answer is a success, whatever its status; only a transport that fails is a failure.
// Redirects are not followed. Addresses that are not public are refused unless the operator of the host lists the name.
//
//	http.Post("https://hooks.example.com/deployed",
//		http.Header("content-type", "application/json"), http.Body([]byte(`{"app":"web"}`)))
package http

import configurator "configurator.dev/sdk"

// Option is what a request has beside method and address.
type Option func(*configurator.HTTPOperation)

// Header adds a header. `host` is refused, since it follows from the URL; `content-length` must be that of the body.
func Header(name, value string) Option {
	return func(o *configurator.HTTPOperation) { o.Headers = append(o.Headers, [2]string{name, value}) }
}

// Body is what is sent.
func Body(body []byte) Option { return func(o *configurator.HTTPOperation) { o.Body = body } }

// Get is a GET.
func Get(url string, options ...Option) configurator.Operation { return New("GET", url, options...) }

// Post is a POST.
func Post(url string, options ...Option) configurator.Operation { return New("POST", url, options...) }

// New is a request of any method, in upper case. The URL holds no credentials, and writes its host plainly.
//
// The host adds an Idempotency-Key unless there is one: the same on every attempt of the request, also after a restart of the host.
func New(method, url string, options ...Option) configurator.Operation {
	operation := configurator.HTTPOperation{Method: method, URL: url}
	for _, option := range options {
		option(&operation)
	}
	return operation
}
