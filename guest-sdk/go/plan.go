package configurator

// Plan is what the handlers of a pipeline have planned so far. The host carries it out when the last one has returned. Its requests and
// entries can be changed and put into an output, where they replace those of the same names. Documents in them are [JSON].
type Plan struct {
	// Requests are those that the handlers have asked for.
	Requests []Request
	// Strategy is the order in which the host executes the requests.
	Strategy ExecuteStrategy
	// BatchErrorStrategy is what becomes of failed requests that have a GroupBy and no OnError.
	BatchErrorStrategy BatchErrorStrategy
	// Desired is all that the owner is to have, or nil.
	Desired *DesiredSet
}
