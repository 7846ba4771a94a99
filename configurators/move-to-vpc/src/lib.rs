//! Moves instances of a cloud from one private network to another: an operation that takes minutes, is watched by people, and must not
//! be begun twice.
//!
//! | phase | handlers |
//! |---|---|
//! | Initializing | [`initialize`](initialize::initialize) notes what is to be moved |
//! | PreFlight | checks of the [`account`], the [`instance`]s and the [`network`]s, side by side |
//! | InFlight | [`pause`](pause::pause), [`clone_enis`](clone_enis::clone_enis), [`detach_enis`](detach_enis::detach_enis), [`migrate_instances`](migrate_instances::migrate_instances), [`attach_enis`](attach_enis::attach_enis), [`unbind_eips`](unbind_eips::unbind_eips), [`bind_eips`](bind_eips::bind_eips), one after another |
//!
//! Every leaf is a conversation: it [asks](cloud::Cloud) the cloud, is entered again, and judges the answers. What a leaf changes is an
//! [operation](operations) for each object, under an idempotency key, so it may be asked for again at any time. Only the service of public
//! addresses knows no such keys; the step that binds them is marked `once`.

pub mod account;
pub mod attach_enis;
pub mod bind_eips;
pub mod clone_enis;
pub mod detach_enis;
pub mod initialize;
pub mod instance;
pub mod migrate_instances;
pub mod network;
pub mod pause;
pub mod raise_quota;
pub mod unbind_eips;

pub mod check;
pub mod cloud;
pub mod inventory;
pub mod operations;
pub mod plan;
pub mod reasons;
pub mod resource;
pub mod subnets;

use configurator_sdk::Handler;

use self::reasons::kept;

configurator_sdk::module! {
    handlers: [
        Handler::new("initialize", |input| kept(input, initialize::initialize)).description("Notes what is to be moved."),
        Handler::new("prechkSecretAppId", |input| kept(input, account::secret_app_id)).description("The access key belongs to the account."),
        Handler::new("prechkInsStateRunning", |input| kept(input, instance::state_running)).description("All instances exist and run."),
        Handler::new("prechkInsInSrcVpc", |input| kept(input, instance::in_src_vpc)).description("All instances are in the source network."),
        Handler::new("prechkVpcAppId", |input| kept(input, network::vpc_app_id)).description("Both networks belong to the account."),
        Handler::new("prechkCIDR", |input| kept(input, network::cidr)).description("The networks have matching subnets."),
        Handler::new("prechkIPsNotOccupied", |input| kept(input, network::ips_not_occupied)).description("No address is taken in the target network."),
        Handler::new("pause", |input| kept(input, pause::pause)).description("Waits for a person to confirm."),
        Handler::new("cloneENIs", |input| kept(input, clone_enis::clone_enis)).description("Makes the network interfaces in the target network."),
        Handler::new("detachENIs", |input| kept(input, detach_enis::detach_enis)).description("Detaches the old network interfaces."),
        Handler::new("migrateInstances", |input| kept(input, migrate_instances::migrate_instances)).description("Moves the instances."),
        Handler::new("attachENIs", |input| kept(input, attach_enis::attach_enis)).description("Attaches the new network interfaces."),
        Handler::new("unbindEIPs", |input| kept(input, unbind_eips::unbind_eips)).description("Takes public addresses off the old network interfaces."),
        Handler::new("bindEIPs", |input| kept(input, bind_eips::bind_eips)).description("Has public addresses lead to the new network interfaces."),
        Handler::new("raiseQuota", raise_quota::raise_quota).description("Asks for more network interfaces."),
    ],
}
