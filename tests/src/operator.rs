//! Vault, as its operator sees it.

use anyhow::{Context as _, Result};
use configurator_host::sinks::secretstore::vault::VaultSecretStore;
use reqwest::Method;
use serde_json::Value;

use crate::controlplane::About;

/// Who holds the root token of a Vault.
pub struct Operator {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Operator {
    /// Of the Vault among these servers.
    ///
    /// # Errors
    /// When the certificate of the authority cannot be read.
    pub fn new(about: &About) -> Result<Self> {
        // Installs a provider of TLS.
        VaultSecretStore::new(about.vault_options())?;
        let ca = reqwest::Certificate::from_pem(&std::fs::read(&about.ca)?)?;
        Ok(Self {
            http: reqwest::Client::builder()
                .tls_certs_only([ca])
                .no_proxy()
                .build()?,
            url: about.vault.url.clone(),
            token: about.vault.token.clone(),
        })
    }

    /// Trusts the authority of the servers.
    #[must_use]
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Asks the node at this address; returns the status and the body, `Null` where that is no JSON.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask_at(
        &self,
        node: &str,
        method: Method,
        path: &str,
        body: Value,
    ) -> Result<(u16, Value)> {
        let answer = self
            .http
            .request(method, format!("{node}/v1/{path}"))
            .header("X-Vault-Token", &self.token)
            .body(body.to_string())
            .send()
            .await?;
        let status = answer.status().as_u16();
        let text = answer.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    /// # Errors
    /// When there is no answer, or it refuses.
    pub async fn write(&self, path: &str, body: Value) -> Result<Value> {
        self.ask(Method::POST, path, body).await
    }

    /// # Errors
    /// When there is no answer, or it refuses.
    pub async fn read(&self, path: &str) -> Result<Value> {
        self.ask(Method::GET, path, Value::Null).await
    }

    /// A token as this body of `auth/token/create` describes it.
    ///
    /// # Errors
    /// When there is no answer, or it refuses.
    pub async fn token(&self, description: Value) -> Result<String> {
        let answer = self.write("auth/token/create", description).await?;
        let token = answer.pointer("/auth/client_token");
        Ok(token
            .and_then(Value::as_str)
            .context("no token")?
            .to_owned())
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        let (status, answer) = self.ask_at(&self.url, method, path, body).await?;
        anyhow::ensure!(status < 300, "{path}: {status}: {answer}");
        Ok(answer)
    }
}
