package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// byColor is the index of Widgets by their colour.
const byColor = "color"

// inform keeps copies of what the namespace has: ConfigMaps that carry the label `watched`, by the typed client, all
// Widgets by the dynamic one, and of the red ones another copy, which the server selects by a field.
func inform(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}

	labelled := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.LabelSelector = "watched"
	})
	core := informers.NewSharedInformerFactoryWithOptions(typed, *resync, informers.WithNamespace(*namespace), labelled)
	maps := core.Core().V1().ConfigMaps()
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, *resync, *namespace, nil)
	all := custom.ForResource(widgets.WithResource("widgets"))
	onlyRed := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, *resync, *namespace,
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("spec.color", "red").String()
		})
	red := onlyRed.ForResource(widgets.WithResource("widgets"))

	index := cache.Indexers{byColor: func(object any) ([]string, error) { return []string{value(object)}, nil }}
	if err := all.Informer().AddIndexers(index); err != nil {
		return err
	}
	followed := []struct {
		name     string
		informer cache.SharedIndexInformer
	}{{"configmaps", maps.Informer()}, {"widgets", all.Informer()}, {"red", red.Informer()}}
	for _, one := range followed {
		if err := follow(one.name, one.informer); err != nil {
			return err
		}
	}

	onQuestion("configmaps", func(selector string) line {
		wanted, err := labels.Parse(selector)
		if err != nil {
			return line{"error": err.Error()}
		}
		found, err := maps.Lister().ConfigMaps(*namespace).List(wanted)
		return listed("configmaps", found, err)
	})
	onQuestion("widgets", func(color string) line {
		found, err := all.Informer().GetIndexer().ByIndex(byColor, color)
		return listed("widgets", found, err)
	})

	core.Start(ctx.Done())
	custom.Start(ctx.Done())
	onlyRed.Start(ctx.Done())
	for _, one := range followed {
		if !cache.WaitForCacheSync(ctx.Done(), one.informer.HasSynced) {
			return errors.New("ended before everything was listed")
		}
		say(line{"synced": one.name, "objects": len(one.informer.GetStore().ListKeys())})
	}
	<-ctx.Done()
	core.Shutdown()
	custom.Shutdown()
	onlyRed.Shutdown()
	return nil
}

// follow says what an informer hands out, and what went wrong with its watch.
func follow(name string, informer cache.SharedIndexInformer) error {
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		say(line{"broken": name, "error": err.Error()})
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			say(line{"added": name, "name": key(object), "value": value(object), "initial": initial})
		},
		UpdateFunc: func(before, object any) {
			// A resync hands out what the informer has; so does a new listing, when nothing has changed meanwhile.
			if version(before) == version(object) {
				say(line{"again": name, "name": key(object), "value": value(object)})
				return
			}
			say(line{"updated": name, "name": key(object), "before": value(before), "value": value(object)})
		},
		DeleteFunc: func(object any) {
			if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
				say(line{"deleted": name, "name": last.Key, "missed": true})
				return
			}
			say(line{"deleted": name, "name": key(object), "value": value(object)})
		},
	})
	return err
}

func listed[T any](name string, objects []T, err error) line {
	if err != nil {
		return line{"error": err.Error()}
	}
	found := map[string]string{}
	for _, object := range objects {
		found[key(object)] = value(object)
	}
	return line{"listed": name, "names": slices.Sorted(maps.Keys(found)), "values": found}
}

func key(object any) string {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return err.Error()
	}
	_, short, err := cache.SplitMetaNamespaceKey(name)
	if err != nil {
		return err.Error()
	}
	return short
}

func version(object any) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err.Error()
	}
	return accessor.GetResourceVersion()
}

// value is what a test changes: the datum of a ConfigMap, the colour of a Widget.
func value(object any) string {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		return object.Data["value"]
	case *unstructured.Unstructured:
		color, _, _ := unstructured.NestedString(object.Object, "spec", "color")
		return color
	default:
		return fmt.Sprintf("%T", object)
	}
}
