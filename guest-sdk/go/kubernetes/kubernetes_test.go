package kubernetes

import (
	"testing"

	configurator "configurator.dev/sdk"
)

func TestTheCoreGroupHasNoSlash(t *testing.T) {
	if Pod.APIVersion() != "v1" || Deployment.APIVersion() != "apps/v1" {
		t.Errorf("got %s, %s", Pod.APIVersion(), Deployment.APIVersion())
	}
}

func TestAnObjectIsNamedToWaitForIt(t *testing.T) {
	want := configurator.ObjectKey{Group: "apps", Version: "v1", Plural: "deployments", Namespace: "shop", Name: "web"}
	if got := Deployment.Key("shop", "web"); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIsNotSaidIsLeftToTheHost(t *testing.T) {
	got, is := Pod.Create("shop", "p", "{}").(configurator.KubernetesOperation)
	if !is || got.PatchType != configurator.PatchDefault || got.Propagation != configurator.PropagationDefault || got.Force || got.MustNotExist {
		t.Errorf("got %+v", got)
	}
}
