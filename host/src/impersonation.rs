//! Impersonates ServiceAccounts in requests to Kubernetes.
//!
//! The API server checks the rights of the ServiceAccount, not those of the host. The host needs the right to impersonate it.

use configurator_core::service_account::ServiceAccount;
use http::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::client::Body;
use tower::BoxError;

use crate::objects;

const USER: HeaderName = HeaderName::from_static("impersonate-user");

/// Adds the header that impersonates this ServiceAccount.
pub(crate) fn impersonate(
    headers: &mut HeaderMap,
    account: &ServiceAccount,
) -> Result<(), InvalidHeaderValue> {
    headers.insert(USER, HeaderValue::from_str(&account.user())?);
    Ok(())
}

/// Returns a client that sends each request as this ServiceAccount. `None`: as the host.
pub(crate) fn acting_as(client: &Client, account: Option<&ServiceAccount>) -> Client {
    let Some(account) = account.cloned() else {
        return client.clone();
    };
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let send = tower::service_fn(move |mut request: http::Request<Body>| {
        let impersonated = impersonate(request.headers_mut(), &account);
        let client = client.clone();
        async move {
            impersonated?;
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(send, namespace)
}

/// Checks that the API server treats requests of this client as those of the ServiceAccount, without further groups. A proxy may remove
/// the header, and the kubeconfig of the host may add groups.
///
/// # Errors
/// When the API server does not, or cannot be reached.
pub(crate) async fn check(
    client: &Client,
    account: &ServiceAccount,
) -> Result<(), ImpersonationError> {
    let review = Api::all(client.clone())
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .map_err(|error| ImpersonationError {
            is_answer: matches!(&error, kube::Error::Api(status) if status.code == 403),
            why: objects::explained(&error),
        })?;
    let UserInfo {
        username, groups, ..
    } = review
        .status
        .and_then(|status| status.user_info)
        .unwrap_or_default();
    let username = username.unwrap_or_default();
    let groups = groups.unwrap_or_default();
    let expected = account.groups();
    if username == account.user() && groups.iter().all(|group| expected.contains(group)) {
        return Ok(());
    }
    Err(ImpersonationError {
        is_answer: true,
        why: format!(
            "the API server takes its requests as those of {username:?} in the groups {groups:?}"
        ),
    })
}

/// Why the impersonation of a ServiceAccount failed.
pub(crate) struct ImpersonationError {
    /// Whether the API server has answered. If not, the impersonation may work.
    pub(crate) is_answer: bool,
    /// The answer, or the connection error.
    pub(crate) why: String,
}
