package configurator

import "time"

// DesiredSet is all that the owner is to have: the object that the run is about. The host deletes what an earlier set had and this one lacks.
//
//	set := &configurator.DesiredSet{Entries: []configurator.DesiredEntry{
//		{Name: "password", Content: secretstore.Secret("shop-db").Content(), OnDelete: configurator.OnDeleteRetain},
//		{Name: "database", Content: kubernetes.Content(statefulSet), DependsOn: []string{"password"}},
//	}}
type DesiredSet struct {
	// Entries are in any order: DependsOn and Orders decide.
	Entries []DesiredEntry
	// AllowEmpty deletes all members if there are no entries. Without it, a set without entries is an error.
	AllowEmpty bool
	// TerminationPolicy is what becomes of the members when the owner is deleted. Default: TerminationDelete.
	TerminationPolicy TerminationPolicy
	// TerminationPolicyAt is a path into the owner, such as `.spec.terminationPolicy`, to one of DoNotTerminate, KeepVolumes, Delete and
	// WipeOut. The host reads it when the owner is deleted, without the handler. If given, it replaces TerminationPolicy.
	TerminationPolicyAt string
	// Orders say where the order of creation, update or deletion differs from DependsOn. Default: nowhere.
	Orders *Orders
	// PreTerminate are requests that the host executes when the owner is being deleted, before it deletes any member. Each waits for the
	// requests that it names in DependsOn.
	PreTerminate []Request
}

// DesiredEntry is one member that the owner is to have. A field that is left out has the contract's default.
type DesiredEntry struct {
	// Name names the entry in DependsOn, in orders and in results. No two entries and requests of one output share a name.
	Name string
	// Content is the member: see [Content].
	Content Content
	// DependsOn names entries that must be ready first.
	DependsOn []string
	// ReadyWhen is when the entry is ready. Default: WhenHealthy for a Kubernetes object, WhenExists for all else.
	ReadyWhen Readiness
	// FailedWhen is an expression in CEL over `object`. The entry has failed while it is true.
	FailedWhen string
	// Timeout is how long the entry may take to be ready after it was written, or after it was ready last. Default: no limit.
	Timeout time.Duration
	// OnExisting is what happens if a member exists that belongs to no set. Default: OnExistingRefuse.
	OnExisting OnExisting
	// OnConflict is what happens if another field manager has a field that the entry sets to another value. Default: OnConflictFail.
	OnConflict OnConflict
	// OnImmutable is what happens if the server refuses a change because a field is immutable. Default: OnImmutableFail.
	OnImmutable OnImmutable
	// IgnoredPaths are fields that the host does not set or correct once the object exists: `.spec.replicas`. For Kubernetes objects.
	IgnoredPaths []string
	// OnDelete is what becomes of the member if the owner is deleted, or if a later set has no such entry. Default: OnDeleteWithOwner.
	OnDelete OnDelete
}

// Orders are lists of groups of entry names. A group comes after the one before it. An order replaces the dependencies between the entries
// that it names; an empty one changes nothing.
type Orders struct {
	// Provision is the order of creation.
	Provision [][]string
	// Update is the order of updates.
	Update [][]string
	// Terminate is the order of deletion: the first group is deleted first.
	Terminate [][]string
}

// OnExisting is what happens if a member exists that belongs to no set.
type OnExisting uint8

// What happens if a member exists that belongs to no set.
const (
	OnExistingDefault OnExisting = iota
	// OnExistingRefuse: the entry fails.
	OnExistingRefuse
	// OnExistingAdopt: the set takes it over.
	OnExistingAdopt
	// OnExistingCreateOnly: the set creates the member if it is absent, and never changes it afterwards, whoever created it.
	OnExistingCreateOnly
)

// OnConflict is what happens if another field manager has a field that the entry sets to another value.
type OnConflict uint8

// What happens if another field manager has a field.
const (
	OnConflictDefault OnConflict = iota
	// OnConflictFail: the entry fails.
	OnConflictFail
	// OnConflictForce: the set takes the field over.
	OnConflictForce
)

// OnImmutable is what happens if the server refuses a change because a field is immutable.
type OnImmutable uint8

// What happens if a field that changes is immutable.
const (
	OnImmutableDefault OnImmutable = iota
	// OnImmutableFail: the entry fails.
	OnImmutableFail
	// OnImmutableRecreate: the host deletes the member and creates it again.
	OnImmutableRecreate
)

// OnDelete is what becomes of a member if the owner is deleted, or if a later set has no such entry.
type OnDelete uint8

// What becomes of a member if the owner is deleted, or if a later set has no such entry.
const (
	OnDeleteDefault OnDelete = iota
	// OnDeleteWithOwner: the member is deleted.
	OnDeleteWithOwner
	// OnDeleteRetain: the member stays, and belongs to no set any more.
	OnDeleteRetain
	// OnDeleteOnlyUnderWipeOut: the member is deleted with TerminationWipeOut, and stays otherwise.
	OnDeleteOnlyUnderWipeOut
)

// TerminationPolicy is what becomes of the members when the owner is deleted.
type TerminationPolicy uint8

// What becomes of the members when the owner is deleted.
const (
	TerminationDefault TerminationPolicy = iota
	// TerminationDoNotTerminate: owner and members stay.
	TerminationDoNotTerminate
	// TerminationKeepVolumes: all but volumes, volume claims and volume snapshots is deleted.
	TerminationKeepVolumes
	// TerminationDelete: all is deleted that OnDelete does not keep.
	TerminationDelete
	// TerminationWipeOut: as TerminationDelete, with what is kept under every other policy.
	TerminationWipeOut
)

// Entry adds entries.
func (s *DesiredSet) Entry(entries ...DesiredEntry) *DesiredSet {
	s.Entries = append(s.Entries, entries...)
	return s
}
