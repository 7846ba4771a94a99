//! A host inside a program of one's own: `cargo run --example embed -- MODULES CONFIGURATOR.yaml`.

use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_host::host::Host;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::objects;
use configurator_host::resource::definitions;
use configurator_store::Store;
use kube::Client;
use kube::api::PatchParams;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(modules), Some(file)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: embed MODULES CONFIGURATOR.yaml");
    };
    // An API in memory. `kube::Client::try_default()` would speak to a cluster instead.
    let options = ApiServerOptions::new(jiff::Timestamp::now);
    let server = ApiServer::open(Store::memory(), options).await?;
    let client = Client::new(server, "default");
    let configurator = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    for object in definitions().into_iter().chain([configurator]) {
        objects::apply(&client, &object, &PatchParams::apply("embed")).await?;
    }

    let modules = ModuleDirectory::new(modules);
    let host = Host::builder().client(client).modules(modules).build()?;
    let mut report = host.report();
    let ready = report.wait_for(|report| report.is_ready() && !report.keepers.is_empty());
    host.run(async { drop(ready.await) }).await;
    println!("every object has been configured");
    Ok(())
}
