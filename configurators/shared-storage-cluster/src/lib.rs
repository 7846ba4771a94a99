//! Runs database clusters on shared storage: one Pod that writes, several that read, a manager that knows them all.
//!
//! A cluster *Init*ializes, is *Running*, or is *Interrupt*ed; in these stable phases nothing is done. What is wanted and is not so leads
//! to an unstable one, whose flow brings the cluster back to *Running*:
//!
//! | phase | when | flow |
//! |---|---|---|
//! | Creating | [`check_install`](check_install::check_install) | [`init_meta`](init_meta::init_meta), [`prepare_storage`](prepare_storage::prepare_storage), [`create_rw_pod`](create_pods::create_rw_pod), [`create_ro_pods`](create_pods::create_ro_pods), [`create_cluster_manager`](create_cluster_manager::create_cluster_manager), [`add_to_cluster_manager`](add_to_cluster_manager::add_to_cluster_manager), [`update_running_status`](update_running_status::update_running_status) |
//! | ModifyClass | another class is wanted | the step group RebuildPods, `update_running_status` |
//! | Upgrading | [`check_upgrade`](check_upgrade::check_upgrade) | [`check_version`](check_version::check_version), RebuildPods, `update_running_status` |
//! | Expanding | more storage or other readers are wanted | [`plan`](plan::plan), [`expand_storage`](expand_storage::expand_storage), `create_ro_pods`, [`remove_ro_pods`](remove_ro_pods::remove_ro_pods), `add_to_cluster_manager`, `update_running_status` |
//!
//! RebuildPods is `plan`, [`rebuild_ro_pods`](rebuild_pods::rebuild_ro_pods), [`rebuild_rw_pod`](rebuild_pods::rebuild_rw_pod),
//! `add_to_cluster_manager`. What a flow is to bring about is settled by its first step; who changes the object meanwhile is served by the
//! flow after it.

pub mod add_to_cluster_manager;
pub mod check_install;
pub mod check_upgrade;
pub mod check_version;
pub mod cleanup;
pub mod create_cluster_manager;
pub mod create_pods;
pub mod expand_storage;
pub mod init_meta;
pub mod plan;
pub mod prepare_storage;
pub mod rebuild_pods;
pub mod recreate_pod;
pub mod remove_ro_pods;
pub mod update_running_status;

pub mod cluster;
pub mod ensure;
pub mod field;
pub mod pod;

use configurator_sdk::Handler;

configurator_sdk::module! {
    handlers: [
        Handler::new("checkInstall", check_install::check_install).description("The cluster is to be made."),
        Handler::new("checkUpgrade", check_upgrade::check_upgrade).description("Another version is wanted."),
        Handler::new("workflow_shared.InitMeta", init_meta::init_meta).description("Settles what is to be made, and makes its password and settings."),
        Handler::new("workflow_shared.PrepareStorage", prepare_storage::prepare_storage).description("Makes the storage, and waits for it."),
        Handler::new("workflow_shared.CreateRwPod", create_pods::create_rw_pod).description("Makes the Pod that writes, and waits for it."),
        Handler::new("workflow_shared.CreateRoPods", create_pods::create_ro_pods).description("Makes the Pods that read, and waits for them."),
        Handler::new("workflow_shared.CreateClusterManager", create_cluster_manager::create_cluster_manager).description("Makes the cluster's manager, and waits for it."),
        Handler::new("workflow_shared.AddToClusterManager", add_to_cluster_manager::add_to_cluster_manager).description("Tells the manager which Pods there are, and makes the Services."),
        Handler::new("workflow_shared.UpdateRunningStatus", update_running_status::update_running_status).description("Says in the status what the cluster is now."),
        Handler::new("workflow_shared.Plan", plan::plan).description("Settles what is to be changed."),
        Handler::new("workflow_shared.CheckVersion", check_version::check_version).description("The version can be upgraded to."),
        Handler::new("workflow_shared.RebuildRoPods", rebuild_pods::rebuild_ro_pods).description("Makes the Pods that read anew, one after another."),
        Handler::new("workflow_shared.RebuildRwPod", rebuild_pods::rebuild_rw_pod).description("Makes the Pod that writes anew."),
        Handler::new("workflow_shared.ExpandStorage", expand_storage::expand_storage).description("Asks for more storage, and waits for it."),
        Handler::new("workflow_shared.RemoveRoPods", remove_ro_pods::remove_ro_pods).description("Removes the Pods that are too many."),
        Handler::new("recreatePod", recreate_pod::recreate_pod).description("Removes Pods that have failed, so that they are made again."),
        Handler::new("cleanup", cleanup::cleanup).description("Deletes the password of a cluster that is gone."),
    ],
}
