package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	setManager = "set-manager"
	// parallel is how many objects of a set are applied at one time.
	parallel = 32
)

// keepSets keeps sets of ConfigMaps as an operator does: a ConfigMap with the label `app: set-owner` has in `data.set`
// which others there should be. They are its own, and watched; one that differs is applied.
func keepSets(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	// It is measured what it costs, not how long it is made to wait.
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{*namespace: {}}},
	})
	if err != nil {
		return err
	}
	isOwner := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetLabels()["app"] == "set-owner"
	})
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}, builder.WithPredicates(isOwner)).
		Owns(&corev1.ConfigMap{}).
		Complete(&sets{client: manager.GetClient()})
	if err != nil {
		return err
	}
	say(line{"did": "start"})
	return manager.Start(ctx)
}

type sets struct {
	client client.Client
}

// Reconcile brings the objects of one owner to what it wants.
func (s *sets) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var owner corev1.ConfigMap
	if err := s.client.Get(ctx, request.NamespacedName, &owner); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var wanted struct {
		Entries []struct {
			Object corev1apply.ConfigMapApplyConfiguration `json:"object"`
		} `json:"entries"`
	}
	if err := json.Unmarshal([]byte(owner.Data["set"]), &wanted); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("data.set: %w", err))
	}
	reference := metav1apply.OwnerReference().
		WithAPIVersion("v1").WithKind("ConfigMap").WithName(owner.Name).WithUID(owner.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	failures := make([]error, len(wanted.Entries))
	applied := 0
	places := make(chan struct{}, parallel)
	var applying sync.WaitGroup
	for index := range wanted.Entries {
		object := &wanted.Entries[index].Object
		var found corev1.ConfigMap
		name := types.NamespacedName{Namespace: owner.Namespace, Name: *object.Name}
		err := s.client.Get(ctx, name, &found)
		if err == nil && maps.Equal(found.Data, object.Data) {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		applied++
		places <- struct{}{}
		applying.Go(func() {
			object.WithOwnerReferences(reference)
			failures[index] = s.client.Apply(ctx, object, client.FieldOwner(setManager), client.ForceOwnership)
			<-places
		})
	}
	applying.Wait()
	for _, err := range failures {
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	say(line{"did": "apply", "owner": owner.Name, "applied": applied})
	return reconcile.Result{}, nil
}
