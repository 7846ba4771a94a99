package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// useTyped does each thing once with clients that take nothing but protobuf.
func useTyped(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := useDeployment(ctx, typed); err != nil {
		return fmt.Errorf("Deployment: %w", err)
	}
	if err := usePod(ctx, typed); err != nil {
		return fmt.Errorf("Pod: %w", err)
	}
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := useDefinition(ctx, definitions); err != nil {
		return fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	names, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := useMetadata(ctx, names); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	groups, err := typed.Discovery().ServerGroups()
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	hasApps := slices.ContainsFunc(groups.Groups, func(group metav1.APIGroup) bool { return group.Name == "apps" })
	say(line{"did": "discovery", "apps": hasApps})
	<-ctx.Done()
	return nil
}

// shown is an object without what differs from server to server.
func shown[T metav1.Object](object T) T {
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	object.SetManagedFields(nil)
	object.SetNamespace("")
	return object
}

func useDeployment(ctx context.Context, typed kubernetes.Interface) error {
	deployments := typed.AppsV1().Deployments(*namespace)
	events, err := deployments.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer events.Stop()
	labels := map[string]string{"app": "typed"}
	created, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "typed", Labels: labels, Annotations: map[string]string{"note": "é"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.FromString("30%")), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: "example.com/none",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1Gi")}},
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
						Path: "/", Port: intstr.FromString("web"),
					}}},
					Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
					Env:   []corev1.EnvVar{{Name: "EMPTY"}, {Name: "SET", Value: "x"}},
				}}},
			},
		},
	}, metav1.CreateOptions{FieldManager: "typed"})
	if err != nil {
		return err
	}
	say(line{"did": "create", "object": shown(created)})
	event := <-events.ResultChan()
	if deployment, ok := event.Object.(*appsv1.Deployment); ok {
		say(line{"did": "watch", "type": event.Type, "name": deployment.Name})
	} else {
		return fmt.Errorf("the watch sent %T", event.Object)
	}
	list, err := deployments.List(ctx, metav1.ListOptions{LabelSelector: "app=typed"})
	if err != nil {
		return err
	}
	for index := range list.Items {
		say(line{"did": "list", "name": list.Items[index].Name, "replicas": list.Items[index].Spec.Replicas, "versioned": list.ResourceVersion != ""})
	}
	patch := []byte(`{"metadata": {"labels": {"patched": "yes"}}}`)
	patched, err := deployments.Patch(ctx, "typed", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	say(line{"did": "patch", "labels": patched.Labels, "generation": patched.Generation})
	_, err = deployments.Get(ctx, "absent", metav1.GetOptions{})
	say(line{"did": "fail", "reason": apierrors.ReasonForError(err), "message": err.Error()})
	invalid := created.DeepCopy()
	invalid.Name = "Not A Name"
	invalid.Spec.Template.Spec.Containers = nil
	_, err = deployments.Create(ctx, invalid, metav1.CreateOptions{})
	say(line{"did": "fail", "reason": apierrors.ReasonForError(err)})
	return deployments.Delete(ctx, "typed", metav1.DeleteOptions{})
}

func usePod(ctx context.Context, typed kubernetes.Interface) error {
	pods := typed.CoreV1().Pods(*namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "typed"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/none"}}},
	}
	var created *corev1.Pod
	// A namespace that was just created may have no ServiceAccount yet.
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		created, err = pods.Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	created.Status.Phase = corev1.PodRunning
	created.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "example.com/none", RestartCount: 0, Ready: false}}
	updated, err := pods.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	say(line{"did": "status", "status": updated.Status})
	return pods.Delete(ctx, "typed", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

func useDefinition(ctx context.Context, client apiextensions.Interface) error {
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	plural := "things." + *namespace + ".example.com"
	created, err := definitions.Create(ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: *namespace + ".example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1beta1", Served: false, Storage: false, Schema: definitionSchema()},
				{Name: "v1", Served: true, Storage: true, Schema: definitionSchema(), Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	say(line{"did": "define", "versions": created.Spec.Versions, "names": created.Spec.Names.Kind})
	return definitions.Delete(ctx, plural, metav1.DeleteOptions{})
}

// definitionSchema has each form that a part of a schema can have.
func definitionSchema() *apiextensionsv1.CustomResourceValidation {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"list":   {Type: "array", MinItems: ptr.To[int64](0), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
			"map":    {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &text}},
			"free":   {Type: "object", XPreserveUnknownFields: ptr.To(true)},
			"number": {Type: "number", Minimum: ptr.To(0.0), Maximum: ptr.To(2.5), Default: &apiextensionsv1.JSON{Raw: []byte("0")}},
			"choice": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}},
			"either": {XIntOrString: true, Nullable: true},
		},
		Required:     []string{"list"},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.list.size() < 5", Message: "too many"}},
	}}
}

func useMetadata(ctx context.Context, client metadata.Interface) error {
	for _, resource := range []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}, widgets.WithResource("widgets")} {
		list, err := client.Resource(resource).Namespace(*namespace).List(ctx, metav1.ListOptions{LabelSelector: "watched"})
		if err != nil {
			return err
		}
		names := []string{}
		for index := range list.Items {
			names = append(names, list.Items[index].Name)
		}
		slices.Sort(names)
		say(line{"did": "metadata", "resource": resource.Resource, "names": names})
	}
	return nil
}
