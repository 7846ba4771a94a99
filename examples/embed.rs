//! A host inside a program of one's own: `cargo run --example embed -- MODULES CONFIGURATOR.yaml`.

use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_host::host::Host;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::resource::Configurator;
use configurator_store::Store;
use kube::api::{Api, PostParams};
use kube::{Client, CustomResourceExt as _};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(modules), Some(file)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: embed MODULES CONFIGURATOR.yaml");
    };
    // An API in memory. `kube::Client::try_default()` would speak to a cluster instead.
    let server =
        ApiServer::open(Store::memory(), ApiServerOptions::new(jiff::Timestamp::now)).await?;
    let client = Client::new(server, "default");
    Api::all(client.clone())
        .create(&PostParams::default(), &Configurator::crd())
        .await?;
    let configurator: Configurator = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    Api::all(client.clone())
        .create(&PostParams::default(), &configurator)
        .await?;

    let host = Host::builder()
        .client(client)
        .modules(ModuleDirectory::new(modules))
        .build()?;
    let mut report = host.report();
    let ready = async move {
        drop(
            report
                .wait_for(|report| report.is_ready() && !report.keepers.is_empty())
                .await,
        )
    };
    host.run(ready).await;
    println!("every object has been configured");
    Ok(())
}
