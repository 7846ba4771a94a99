package configurator

import "strings"

// String has a line for each entry, one for the options of the set if it has any, and one for each request before a deletion. Not a stable
// format.
func (s *DesiredSet) String() string {
	var text strings.Builder
	for _, entry := range s.Entries {
		text.WriteString("desired " + entry.String() + "\n")
	}
	if options := s.options(); len(options) > 0 {
		text.WriteString("desired set: " + strings.Join(options, ", ") + "\n")
	}
	for _, request := range s.PreTerminate {
		text.WriteString("pre-terminate " + request.String() + "\n")
	}
	return text.String()
}

// String has name, content, and the options that differ from the defaults. Not a stable format.
func (e DesiredEntry) String() string {
	line := &line{}
	line.add(e.Name + ": ")
	line.content(e.Content)
	for _, name := range e.DependsOn {
		line.option("depends-on", name)
	}
	line.readiness(e.ReadyWhen)
	line.option("failed-when", e.FailedWhen)
	line.timeout(e.Timeout)
	line.option("on-existing", word(e.OnExisting, "", "refuse", "adopt", "create-only"))
	line.option("on-conflict", word(e.OnConflict, "", "fail", "force"))
	line.option("on-immutable", word(e.OnImmutable, "", "fail", "recreate"))
	for _, path := range e.IgnoredPaths {
		line.option("ignores", path)
	}
	line.option("on-delete", word(e.OnDelete, "", "with-owner", "retain", "only-under-wipe-out"))
	return line.String()
}

// The options of the set that differ from the defaults.
func (s *DesiredSet) options() []string {
	var options []string
	if s.AllowEmpty {
		options = append(options, "allow-empty")
	}
	policy := word(s.TerminationPolicy, "", "do-not-terminate", "keep-volumes", "delete", "wipe-out")
	if s.TerminationPolicyAt != "" {
		policy = "at " + s.TerminationPolicyAt
	}
	if policy != "" {
		options = append(options, "termination-policy "+policy)
	}
	if s.Orders == nil {
		return options
	}
	for _, order := range []struct {
		name   string
		groups [][]string
	}{
		{"provision", s.Orders.Provision},
		{"update", s.Orders.Update},
		{"terminate", s.Orders.Terminate},
	} {
		var groups []string
		for _, group := range order.groups {
			groups = append(groups, strings.Join(group, " "))
		}
		if len(groups) > 0 {
			options = append(options, order.name+" "+strings.Join(groups, " | "))
		}
	}
	return options
}

func (l *line) content(content Content) {
	switch content := content.(type) {
	case KubernetesContent:
		l.add("kubernetes " + shown(content.Object))
	case ConfigContent:
		l.add("config ")
		l.configKey(content.Key)
		l.value(&content.Value)
		l.option("partition", content.Partition)
	case SecretContent:
		l.add("secret " + content.Name)
		if content.Value != nil {
			l.add(" = (a value)")
		}
		l.option("partition", content.Partition)
	default:
		l.add("no content")
	}
}

func (l *line) configKey(key ConfigKey) {
	switch key := key.(type) {
	case ConfigResourceKey:
		l.add(word(key.Type, "pod", "node", "namespace", "workload") + " ")
		for _, part := range []string{key.Namespace, key.WorkloadKind} {
			if part != "" {
				l.add(part + "/")
			}
		}
		l.add(key.Name)
		if key.UID != "" {
			l.add(" (" + key.UID + ")")
		}
	case AppConfKey:
		l.add("app-conf ")
		if key.Namespace != "" {
			l.add(key.Namespace + "/")
		}
		l.add(key.Pod + " " + key.Key)
	case BasicKey:
		l.add("basic " + string(key))
	case TwoLayersKey:
		l.add("two-layers " + key.Second + " " + key.Third)
	default:
		l.add("no key")
	}
}
