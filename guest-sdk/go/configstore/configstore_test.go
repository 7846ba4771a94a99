package configstore

import (
	"testing"

	configurator "configurator.dev/sdk"
)

func TestEachKeyIsAnEntryOfASet(t *testing.T) {
	for _, check := range []struct {
		got configurator.ConfigContent
		key configurator.ConfigKey
	}{
		{
			Pod("shop", "web").UID("6e2d").Content("1"),
			configurator.ConfigResourceKey{Type: configurator.ConfigPod, Name: "web", UID: "6e2d", Namespace: "shop"},
		},
		{
			Workload("shop", "Deployment", "web").Content("1"),
			configurator.ConfigResourceKey{
				Type: configurator.ConfigWorkload, Name: "web", Namespace: "shop", WorkloadKind: "Deployment",
			},
		},
		{AppConf("web", "tier").Content("1"), configurator.AppConfKey{Pod: "web", Key: "tier"}},
		{
			AppConf("web", "tier").Namespace("shop").Content("1"),
			configurator.AppConfKey{Pod: "web", Namespace: "shop", Key: "tier"},
		},
		{Basic("region").Content("1"), configurator.BasicKey("region")},
		{TwoLayers("teams", "red").Content("1"), configurator.TwoLayersKey{Second: "teams", Third: "red"}},
	} {
		if want := (configurator.ConfigContent{Key: check.key, Value: "1"}); check.got != want {
			t.Errorf("got %+v, want %+v", check.got, want)
		}
	}
}

func TestContentIsPutIntoAPartition(t *testing.T) {
	content := Basic("region").Content("north")
	if got := content.InPartition("team-a"); got.Partition != "team-a" || content.Partition != "" {
		t.Errorf("got %+v, %+v", got, content)
	}
}
