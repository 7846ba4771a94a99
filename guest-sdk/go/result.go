package configurator

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Results are what became of requests, in their order.
type Results []ResultEntry

// ResultEntry is the result of a request under its name, or those of a group under its GroupBy.
type ResultEntry struct {
	Key     string
	IsGroup bool
	// Results are those of the group, or the one.
	Results []RequestResult
}

// RequestResult is what became of a request.
type RequestResult struct {
	// RequestName is the name of the request that this answers, or of the entry of a set. It tells the results of a group apart.
	RequestName string
	// Sink is the server that the request went to.
	Sink RequestSink
	// Declarative is as in the request.
	Declarative bool
	// QueryObjects are what the server returned: one document for a get or a write, one an item for a list, none for HTTP.
	// Config store: {"key", "uid"?, "value"}. Secret store: {"name", "version", "value"}. Extension: what it says.
	QueryObjects []JSON
	// Created is when the request was made, and Finished when it ended: empty for a declarative one that has not.
	Created, Finished Timestamp
	// Error is why it failed, where a failure is caught, and nil otherwise.
	Error *RequestError
	// HTTPResponse is the answer of an HTTP endpoint, and nil otherwise.
	HTTPResponse *HTTPResponse
}

// RequestSink is the server that a request goes to.
type RequestSink uint8

// The servers that requests go to.
const (
	SinkKubernetes RequestSink = iota
	SinkConfigstore
	SinkSecretstore
	SinkHTTP
	SinkExtension
)

func (s RequestSink) String() string {
	return word(s, "kubernetes", "configstore", "secretstore", "http", "extension")
}

// RequestError is why a request failed.
type RequestError struct {
	// Kind is what went wrong. A newer host gives an older module the nearest that it knows.
	Kind      ErrorKind
	Message   string
	Retryable bool
	// Status is the server's own: an HTTP status or a gRPC code; nil where it has none.
	Status *uint16
}

// ErrorKind is what went wrong, in the words that every sink shares.
type ErrorKind uint8

// What went wrong.
const (
	// RetryExceedLimit: retried as often as its policy allows, and still failing.
	RetryExceedLimit ErrorKind = iota
	// ResourceGeneric: a failure that fits no other kind. Not retryable.
	ResourceGeneric
	// ResourceNotFound: the server has no such resource. Retryable.
	ResourceNotFound
	// ResourceConflict: another writer was first. Retryable.
	ResourceConflict
	// ResourceMutation: the server refused or failed to make the change. Retryable.
	ResourceMutation
	// ResourcePermission: the server or the Configurator's capabilities forbid it. Not retryable.
	ResourcePermission
	// UnsupportedResourceOperation: the sink has no such operation on this resource. Not retryable.
	UnsupportedResourceOperation
	// APIServerUnavailable: the Kubernetes API cannot be reached. Retryable.
	APIServerUnavailable
	// ConfigstoreUnavailable: the config store cannot be reached. Retryable.
	ConfigstoreUnavailable
	// SecretstoreUnavailable: the secret store cannot be reached, or is sealed. Retryable.
	SecretstoreUnavailable
	// HTTPUnavailable: the HTTP endpoint cannot be reached. Retryable.
	HTTPUnavailable
	// ExtensionUnavailable: the server behind an extension of the host cannot be reached. Retryable.
	ExtensionUnavailable
	// OutcomeUnknown: a Once request was sent and its answer was lost. Not retryable; a person decides.
	OutcomeUnknown
	// NotSent: not sent, because an earlier request or a dependency failed. Not retryable by itself.
	NotSent
)

func (k ErrorKind) String() string {
	return word(k, "retry-exceed-limit", "resource-generic", "resource-not-found", "resource-conflict", "resource-mutation",
		"resource-permission", "unsupported-resource-operation", "api-server-unavailable", "configstore-unavailable",
		"secretstore-unavailable", "http-unavailable", "extension-unavailable", "outcome-unknown", "not-sent")
}

// Retryable says whether the contract has errors of this kind retried.
func (k ErrorKind) Retryable() bool {
	switch k {
	case ResourceNotFound, ResourceConflict, ResourceMutation, APIServerUnavailable, ConfigstoreUnavailable, SecretstoreUnavailable,
		HTTPUnavailable, ExtensionUnavailable:
		return true
	}
	return false
}

// HTTPResponse is the answer of an HTTP endpoint.
type HTTPResponse struct {
	Status uint16
	// Headers are names, in lower case, with their values.
	Headers [][2]string
	Body    []byte
}

// One is the result of the request of this name, or nil: also where it is the key of a group.
func (r Results) One(requestName string) *RequestResult {
	if entry := r.find(requestName); entry != nil && !entry.IsGroup {
		return entry.one()
	}
	return nil
}

// Group has the results of all requests with this GroupBy; none where no request had it.
func (r Results) Group(groupBy string) []RequestResult {
	if entry := r.find(groupBy); entry != nil && entry.IsGroup {
		return entry.Results
	}
	return nil
}

func (r Results) find(key string) *ResultEntry {
	for i := range r {
		if r[i].Key == key {
			return &r[i]
		}
	}
	return nil
}

func (r Results) keys() []string {
	keys := make([]string, 0, len(r))
	for i := range r {
		keys = append(keys, r[i].Key)
	}
	return keys
}

func (e *ResultEntry) one() *RequestResult {
	if len(e.Results) == 0 {
		return nil
	}
	return &e.Results[0]
}

// Succeeded is an error where the request failed: with its name, and fatal unless a retry may help.
func (r *RequestResult) Succeeded() error {
	if r.Error == nil {
		return nil
	}
	return &HandlerError{
		Message: fmt.Sprintf("the request `%s` failed: %s", r.RequestName, r.Error.Message),
		Fatal:   !r.Error.Retryable,
	}
}

// Object reads the first document of the answer. It is an error where the request failed, or where there is none. Where absence is an
// ordinary answer, use [RequestResult.Found].
func (r *RequestResult) Object(into any) error {
	text, err := r.ObjectJSON()
	if err != nil {
		return err
	}
	return text.read(into, "the result `"+r.RequestName+"`")
}

// ObjectJSON is the first document of the answer. Its errors are those of [RequestResult.Object].
func (r *RequestResult) ObjectJSON() (JSON, error) {
	if err := r.Succeeded(); err != nil {
		return "", err
	}
	if len(r.QueryObjects) == 0 {
		return "", Fatal(fmt.Sprintf("the result `%s` has no object", r.RequestName))
	}
	return r.QueryObjects[0], nil
}

// Objects are all documents of the answer: one for each item of a list. It is an error where the request failed.
func (r *RequestResult) Objects() ([]JSON, error) {
	if err := r.Succeeded(); err != nil {
		return nil, err
	}
	return r.QueryObjects, nil
}

// Found is the first document of a get, or empty where the server has no such object. It is for requests with OnErrorCatch, whose target
// may be absent. Any other failure is an error.
func (r *RequestResult) Found() (JSON, error) {
	if r.Error != nil && r.Error.Kind == ResourceNotFound {
		return "", nil
	}
	if err := r.Succeeded(); err != nil {
		return "", err
	}
	if len(r.QueryObjects) == 0 {
		return "", nil
	}
	return r.QueryObjects[0], nil
}

// Response is what an HTTP endpoint answered, whatever its status. It is an error where the request failed, or was none to an endpoint.
func (r *RequestResult) Response() (*HTTPResponse, error) {
	if err := r.Succeeded(); err != nil {
		return nil, err
	}
	if r.HTTPResponse == nil {
		return nil, Fatal(fmt.Sprintf("the result `%s` is none of an HTTP request", r.RequestName))
	}
	return r.HTTPResponse, nil
}

// Header is the value of the header of this name, in lower case; empty where there is none.
func (r *HTTPResponse) Header(name string) string {
	for _, header := range r.Headers {
		if header[0] == name {
			return header[1]
		}
	}
	return ""
}

// Read reads the body, as [JSON.Read] does. It is a fatal error where it is no JSON.
func (r *HTTPResponse) Read(into any) error {
	if !utf8.Valid(r.Body) || !json.Valid(r.Body) {
		return Fatal("the body of the answer is no JSON")
	}
	return JSON(r.Body).read(into, "the body of the answer")
}
