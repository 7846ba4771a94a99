package configurator

import (
	"fmt"
	"strings"
	"time"
)

// String has one line for each request and each read, then the set, the names that the plan loses, and the arguments: made for tests that
// compare a whole output. Not a stable format.
func (o *Output) String() string {
	var text strings.Builder
	for _, request := range o.Requests {
		text.WriteString(request.String())
		text.WriteByte('\n')
	}
	for _, request := range o.Reads {
		text.WriteString("read " + request.String() + "\n")
	}
	if o.Desired != nil {
		text.WriteString(o.Desired.String())
	}
	for _, name := range o.RemovedFromPlan {
		text.WriteString("remove-from-plan " + name + "\n")
	}
	for _, arg := range o.Args {
		fmt.Fprintf(&text, "pass %s = %s\n", arg.Name, shown(arg.Value))
	}
	return text.String()
}

// String has name, operation, target, body, and the options that differ from the defaults. Not a stable format.
func (r Request) String() string {
	line := &line{}
	line.add(r.Name + ": ")
	line.operation(r.Operation)
	line.option("group-by", r.GroupBy)
	if r.Of != nil {
		line.add(", of " + r.Of.Namespace + "/" + r.Of.Name)
	}
	line.option("on-error", word(r.OnError, "", "fail", "catch-error", "drop-error"))
	for _, name := range r.DependsOn {
		line.option("depends-on", name)
	}
	line.readiness(r.ReadyWhen)
	line.timeout(r.Timeout)
	line.option("partition", r.Partition)
	line.flag("declarative", r.Declarative)
	line.flag("bootstrap-dep", r.BootstrapDep)
	line.flag("once", r.Once)
	return line.String()
}

type line struct{ strings.Builder }

func (l *line) add(text string) { l.WriteString(text) }

func (l *line) option(name, value string) {
	if value != "" {
		l.add(", " + name + " " + value)
	}
}

func (l *line) flag(name string, is bool) {
	if is {
		l.add(", " + name)
	}
}

func (l *line) readiness(when Readiness) {
	l.option("ready-when", word(when.Kind, "", "exists", "observed", "healthy", when.Expression))
}

func (l *line) timeout(timeout time.Duration) {
	if timeout > 0 {
		l.add(fmt.Sprintf(", timeout %d ms", timeout.Milliseconds()))
	}
}

func (l *line) value(value *string) {
	if value != nil {
		l.add(" = " + *value)
	}
}

func (l *line) operation(operation Operation) {
	switch operation := operation.(type) {
	case KubernetesOperation:
		l.kubernetes(operation)
	case ConfigOperation:
		l.config(operation)
	case TransactionOperation:
		l.add("config transaction")
		for _, one := range operation.Operations {
			l.add("\n  ")
			l.config(one)
		}
	case SecretOperation:
		l.add("secret " + word(operation.Verb, "get", "create", "update", "delete") + " " + operation.Name)
		if operation.Value != nil {
			l.add(" = (a value)")
		}
		if operation.Version != nil {
			l.add(fmt.Sprintf(", version %d", *operation.Version))
		}
	case HTTPOperation:
		l.add("http " + operation.Method + " " + operation.URL)
	case ExtensionOperation:
		l.add("extension " + operation.Extension + " " + operation.Verb + " " + operation.Target)
		if operation.Body != nil {
			l.add(" " + shown(operation.Body))
		}
	default:
		l.add("no operation")
	}
}

func (l *line) kubernetes(operation KubernetesOperation) {
	verb := word(operation.Verb, "get", "list", "patch", "delete", "create", "replace", "apply")
	if operation.Verb == KubernetesPatch {
		verb = word(operation.PatchType, "patch", "patch", "json-patch", "strategic-patch")
	}
	l.add("kubernetes " + verb + " " + operation.Plural)
	if operation.Group != "" {
		l.add("." + operation.Group)
	}
	if operation.Subresource != "" {
		l.add("/" + operation.Subresource)
	}
	switch {
	case operation.Namespace != "":
		l.add(" " + operation.Namespace + "/" + operation.Name)
	case operation.Name != "":
		l.add(" " + operation.Name)
	}
	if operation.Body != nil {
		l.add(" " + shown(operation.Body))
	}
	l.option("fields", operation.FieldSelector)
	l.option("labels", operation.LabelSelector)
	l.flag("cached", operation.Cached)
	l.flag("forced", operation.Force)
	l.flag("no precheck", operation.MustNotExist)
	l.option("uid", operation.UID)
	l.option("resource-version", operation.ResourceVersion)
	l.option("propagation", word(operation.Propagation, "", "background", "foreground", "orphan"))
}

func (l *line) config(operation ConfigOperation) {
	add := func(verb ConfigVerb, key ConfigKey, value *string) {
		l.add("config " + word(verb, "get", "delete", "update", "create", "put") + " ")
		l.configKey(key)
		l.value(value)
	}
	switch operation := operation.(type) {
	case ConfigResourceOperation:
		add(operation.Verb, ConfigResourceKey{
			Type: operation.Type, Name: operation.Name, UID: operation.UID,
			Namespace: operation.Namespace, WorkloadKind: operation.WorkloadKind,
		}, operation.Value)
	case AppConfOperation:
		add(operation.Verb, AppConfKey{Pod: operation.Pod, Namespace: operation.Namespace, Key: operation.Key}, operation.Value)
	case BasicOperation:
		add(operation.Verb, BasicKey(operation.Key), operation.Value)
	case TwoLayersOperation:
		add(operation.Verb, TwoLayersKey{Second: operation.Second, Third: operation.Third}, operation.Value)
	}
}

// A document, or why it is none.
func shown(document any) string {
	text, err := JSONOf(document)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(text)
}
