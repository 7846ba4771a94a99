package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	managerName = "widget-manager"
	finalizer   = "clients.configurator.dev/manager"
	managedBy   = "app.kubernetes.io/managed-by"
	// behind is how far a cache may be behind.
	behind = 50 * time.Millisecond
)

// manage reconciles Widgets when it leads: each gets a finalizer, a ConfigMap and a ServiceAccount of its own, a status
// and Events; a Secret `palette`, watched by its name, says what a colour is.
func manage(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	addWidgets(scheme)
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	lease, renewal, retry := impatient, impatient*3/4, impatient/8
	here := map[string]cache.Config{*namespace: {}}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              managerName,
		LeaderElectionNamespace:       *namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renewal,
		RetryPeriod:                   &retry,
		Cache: cache.Options{
			DefaultNamespaces: here,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{managedBy: managerName})},
				&corev1.Secret{}:    {Field: fields.OneTermEqualSelector("metadata.name", "palette")},
			},
		},
	})
	if err != nil {
		return err
	}
	err = manager.GetFieldIndexer().IndexField(ctx, &Widget{}, "spec.color", func(object client.Object) []string {
		return []string{object.(*Widget).Spec.Color}
	})
	if err != nil {
		return err
	}
	reconciler := &reconciler{
		cached: manager.GetClient(),
		direct: manager.GetAPIReader(),
		scheme: scheme,
		events: manager.GetEventRecorder(managerName),
		//nolint:staticcheck // Both kinds of Events are still sent by programs that are in use.
		old: manager.GetEventRecorderFor(managerName),
	}
	// What all Widgets of a colour say changes with each of them.
	alike := handler.EnqueueRequestsFromMapFunc(reconciler.alike)
	everything := handler.EnqueueRequestsFromMapFunc(reconciler.everything)
	err = ctrl.NewControllerManagedBy(manager).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.ServiceAccount{}).
		Watches(&Widget{}, alike).
		Watches(&corev1.Secret{}, everything).
		Complete(reconciler)
	if err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		var held coordinationv1.Lease
		name := types.NamespacedName{Namespace: *namespace, Name: managerName}
		if err := reconciler.direct.Get(ctx, name, &held); err != nil {
			say(line{"error": err.Error()})
			return
		}
		say(line{"did": "lead", "transitions": *held.Spec.LeaseTransitions})
	}()
	say(line{"did": "start"})
	return manager.Start(ctx)
}

type reconciler struct {
	cached client.Client
	direct client.Reader
	scheme *runtime.Scheme
	events events.EventRecorder
	old    record.EventRecorder
}

// Reconcile brings one Widget to what it wants. The cache may be a moment behind: then it is tried again.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: behind}, nil
	}
	// What was cut off by the end is no failure.
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	return result, err
}

func (r *reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var widget Widget
	if err := r.cached.Get(ctx, request.NamespacedName, &widget); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.release(ctx, &widget)
	}
	if controllerutil.AddFinalizer(&widget, finalizer) {
		if err := r.cached.Update(ctx, &widget); err != nil {
			return reconcile.Result{}, err
		}
		say(line{"did": "hold", "widget": widget.Name})
	}
	if err := r.configMap(ctx, &widget); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.serviceAccount(ctx, &widget); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.status(ctx, &widget)
}

// configMap is kept by reading, comparing and updating.
func (r *reconciler) configMap(ctx context.Context, widget *Widget) error {
	var palette corev1.Secret
	name := types.NamespacedName{Namespace: widget.Namespace, Name: "palette"}
	if err := r.cached.Get(ctx, name, &palette); client.IgnoreNotFound(err) != nil {
		return err
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.cached, kept, func() error {
		kept.Labels = map[string]string{managedBy: managerName}
		kept.Data = map[string]string{
			"color": widget.Spec.Color,
			"rgb":   string(palette.Data[widget.Spec.Color]),
			"size":  fmt.Sprint(widget.Spec.Size),
		}
		return controllerutil.SetControllerReference(widget, kept, r.scheme)
	})
	if err != nil {
		return err
	}
	if done != controllerutil.OperationResultNone {
		say(line{"did": "write", "widget": widget.Name, "result": done, "data": kept.Data})
		r.events.Eventf(widget, kept, corev1.EventTypeNormal, "Written", "Write", "ConfigMap %s is %s", kept.Name, done)
	}
	return nil
}

// serviceAccount is kept by server-side apply.
func (r *reconciler) serviceAccount(ctx context.Context, widget *Widget) error {
	wanted := corev1apply.ServiceAccount(widget.Name, widget.Namespace).
		WithLabels(map[string]string{managedBy: managerName, "color": widget.Spec.Color}).
		WithAutomountServiceAccountToken(false).
		WithOwnerReferences(metav1apply.OwnerReference().
			WithAPIVersion(widgets.String()).WithKind("Widget").WithName(widget.Name).WithUID(widget.UID).
			WithController(true).WithBlockOwnerDeletion(true))
	return r.cached.Apply(ctx, wanted, client.FieldOwner(managerName), client.ForceOwnership)
}

// status counts by the index of the cache, asks the server the same, and writes what it has found.
func (r *reconciler) status(ctx context.Context, widget *Widget) error {
	wanted := client.MatchingFields{"spec.color": widget.Spec.Color}
	var cached, direct WidgetList
	if err := r.cached.List(ctx, &cached, client.InNamespace(widget.Namespace), wanted); err != nil {
		return err
	}
	if err := r.direct.List(ctx, &direct, client.InNamespace(widget.Namespace), wanted, client.Limit(500)); err != nil {
		return err
	}
	cached.Items = slices.DeleteFunc(cached.Items, func(other Widget) bool { return !other.DeletionTimestamp.IsZero() })
	before := widget.DeepCopy()
	widget.Status.ObservedGeneration = widget.Generation
	widget.Status.Alike = int32(len(cached.Items))
	changed := meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Written", Message: "it is " + widget.Spec.Color,
		ObservedGeneration: widget.Generation,
	})
	if !changed && before.Status.Alike == widget.Status.Alike &&
		before.Status.ObservedGeneration == widget.Status.ObservedGeneration {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.cached.Status().Patch(ctx, widget, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	say(line{"did": "status", "widget": widget.Name, "alike": widget.Status.Alike, "direct": len(direct.Items) > 0,
		"generation": widget.Generation})
	r.old.Eventf(widget, corev1.EventTypeNormal, "Ready", "it is %s", widget.Spec.Color)
	return nil
}

// release lets a Widget go.
func (r *reconciler) release(ctx context.Context, widget *Widget) error {
	before := widget.DeepCopy()
	if !controllerutil.RemoveFinalizer(widget, finalizer) {
		return nil
	}
	r.events.Eventf(widget, nil, corev1.EventTypeNormal, "Released", "Release", "it may go")
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.cached.Patch(ctx, widget, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	say(line{"did": "release", "widget": widget.Name})
	return nil
}

// alike are the other Widgets of the same colour.
func (r *reconciler) alike(ctx context.Context, object client.Object) []reconcile.Request {
	var found WidgetList
	color := client.MatchingFields{"spec.color": object.(*Widget).Spec.Color}
	if err := r.cached.List(ctx, &found, client.InNamespace(object.GetNamespace()), color); err != nil {
		say(line{"error": err.Error()})
	}
	return requests(found.Items)
}

func (r *reconciler) everything(ctx context.Context, object client.Object) []reconcile.Request {
	var found WidgetList
	if err := r.cached.List(ctx, &found, client.InNamespace(object.GetNamespace())); err != nil {
		say(line{"error": err.Error()})
	}
	return requests(found.Items)
}

func requests(found []Widget) []reconcile.Request {
	var wanted []reconcile.Request
	for _, widget := range found {
		name := types.NamespacedName{Namespace: widget.Namespace, Name: widget.Name}
		wanted = append(wanted, reconcile.Request{NamespacedName: name})
	}
	return wanted
}
