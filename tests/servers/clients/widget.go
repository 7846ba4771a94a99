package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widgets are the custom kind of these tests; widget.yaml defines it.
var widgets = schema.GroupVersion{Group: "clients.configurator.dev", Version: "v1"}

// Widget wants a ConfigMap of its colour.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is what a person wants.
type WidgetSpec struct {
	Color string `json:"color"`
	// Size has a default in the definition.
	Size int32 `json:"size,omitempty"`
}

// WidgetStatus is what the manager says.
type WidgetStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Alike is how many Widgets have this colour.
	Alike      int32              `json:"alike,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopy is what code generators write.
func (w *Widget) DeepCopy() *Widget {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	copied.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	return &copied
}

// DeepCopyObject makes it an object of Kubernetes' libraries.
func (w *Widget) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopyObject makes it an object of Kubernetes' libraries.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.ListMeta = *l.ListMeta.DeepCopy()
	copied.Items = make([]Widget, 0, len(l.Items))
	for index := range l.Items {
		copied.Items = append(copied.Items, *l.Items[index].DeepCopy())
	}
	return &copied
}

func addWidgets(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(widgets, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgets)
}
