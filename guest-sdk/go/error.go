package configurator

import "time"

// HandlerError is why a handler could not decide. Any other error that a handler returns is one that may pass.
type HandlerError struct {
	// Message is for whoever looks for the reason.
	Message string
	// Fatal is an error that the same input will always give: the phase fails at once. Any other is retried.
	Fatal bool
	// RetryAfter is when, for an error that may pass; zero is unsaid: after the Configurator's backoff. The
	// contract has whole milliseconds.
	RetryAfter time.Duration
	// Code is looked up in the Configurator's errorCodes, in a machine.
	Code string
}

func (e *HandlerError) Error() string { return e.Message }

// Retry is an error that may pass: after a while the run begins again, with the newest object.
//
//	return nil, configurator.Retry("the account has no quota yet").After(30 * time.Second).WithCode("QUOTA")
func Retry(message string) *HandlerError { return &HandlerError{Message: message} }

// Fatal is an error that no retry can help: the object is given up until it changes.
func Fatal(message string) *HandlerError { return &HandlerError{Message: message, Fatal: true} }

// After says when to begin again, in place of the Configurator's backoff. Zero leaves it to that.
func (e *HandlerError) After(delay time.Duration) *HandlerError {
	e.RetryAfter = delay
	return e
}

// WithCode gives it the code that the Configurator's errorCodes may know.
func (e *HandlerError) WithCode(code string) *HandlerError {
	e.Code = code
	return e
}
