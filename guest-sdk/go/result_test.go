package configurator_test

import (
	"testing"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configuratortest"
)

func failed(kind configurator.ErrorKind) *configurator.RequestResult {
	result := configuratortest.Failed("node", configurator.SinkKubernetes, kind, "it said no")
	return &result
}

func answered(objects ...any) *configurator.RequestResult {
	result := configuratortest.Answered("pods", configurator.SinkKubernetes, objects...)
	return &result
}

func TestAbsenceIsNoFailureForFound(t *testing.T) {
	for _, check := range []struct {
		result   *configurator.RequestResult
		expected configurator.JSON
	}{
		{failed(configurator.ResourceNotFound), ""},
		{answered(), ""},
		{answered(1, 2), "1"},
	} {
		if found, err := check.result.Found(); found != check.expected || err != nil {
			t.Errorf("got %s, %v", found, err)
		}
	}
}

func TestAFailureIsFatalUnlessARetryMayHelp(t *testing.T) {
	_, err := failed(configurator.ResourcePermission).Found()
	checkFatal(t, err, "the request `node` failed: it said no")
	for _, kind := range []configurator.ErrorKind{configurator.APIServerUnavailable, configurator.ResourceNotFound} {
		err := failed(kind).Succeeded()
		if refusal, is := err.(*configurator.HandlerError); !is || refusal.Fatal {
			t.Errorf("got %v", err)
		}
	}
}

func TestAListMayBeEmptyButAnObjectMayNot(t *testing.T) {
	if objects, err := answered().Objects(); len(objects) != 0 || err != nil {
		t.Errorf("got %v, %v", objects, err)
	}
	checkFatal(t, answered().Object(new(any)), "the result `pods` has no object")
	if _, err := failed(configurator.ResourceConflict).Objects(); err == nil {
		t.Error("it has failed")
	}
}

func TestAnAnswerOfAnEndpointIsRead(t *testing.T) {
	result := configuratortest.Responded("hook", 418, map[string]any{"tea": true})
	result.HTTPResponse.Headers = [][2]string{{"content-type", "application/json"}}
	response, err := result.Response()
	if err != nil || response.Status != 418 || response.Header("content-type") != "application/json" || response.Header("x") != "" {
		t.Errorf("got %+v, %v", response, err)
	}
	var body struct{ Tea bool }
	if err := response.Read(&body); err != nil || !body.Tea {
		t.Errorf("got %+v, %v", body, err)
	}
	for _, other := range []string{"tea", "", "{} {}", "\"\xff\"", "\ufeff{}"} {
		response.Body = []byte(other)
		checkFatal(t, response.Read(&body), "the body of the answer is no JSON")
	}
	_, err = answered().Response()
	checkFatal(t, err, "the result `pods` is none of an HTTP request")
}

func TestKindsAreInTheContractsWords(t *testing.T) {
	if got := configurator.NotSent.String(); got != "not-sent" {
		t.Error(got)
	}
	if got := configurator.RetryExceedLimit.String(); got != "retry-exceed-limit" {
		t.Error(got)
	}
	if got := configurator.ExtensionUnavailable.String(); got != "extension-unavailable" || !configurator.ExtensionUnavailable.Retryable() {
		t.Error(got)
	}
	if got := configurator.OutcomeUnknown.String(); got != "outcome-unknown" {
		t.Error(got)
	}
	if got := configurator.SinkExtension.String(); got != "extension" {
		t.Error(got)
	}
	if got := configurator.ErrorKind(99).String(); got != "unknown" {
		t.Error(got)
	}
}
