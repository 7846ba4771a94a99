//! `configurator push` and `pull`: modules in registries of OCI artifacts.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use configurator_build::metadata;
use configurator_guest::digest::Digest;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use jiff::Timestamp;

use super::terminal::{FAINT, NAME};
use crate::module_source::oci::{
    About, Artifact, Authority, Login, LoginError, Reference, Registry, RegistryError,
    RegistryOptions, Signer, SigningKey, is_signed,
};
use crate::network::Reach;

/// How a registry is reached, and who asks.
#[derive(Args)]
pub struct Access {
    /// Also trust this certificate, a PEM file. Repeatable.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
    /// Use plain HTTP, without TLS.
    #[arg(long)]
    plain_http: bool,
    /// Log in as this user, with the password from standard input. Default: the login of `docker login` or `podman login`.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
}

/// What is pushed, and where.
#[derive(Args)]
pub struct PushArgs {
    /// The module: a component file.
    module: PathBuf,
    /// Reference in the registry, such as ghcr.io/team/greeter:1.2.
    reference: Reference,
    /// Sign with this private key of `cosign generate-key-pair`. The password is read from COSIGN_PASSWORD.
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    #[command(flatten)]
    access: Access,
}

/// What is pulled, and where to.
#[derive(Args)]
pub struct PullArgs {
    /// Reference in the registry, such as ghcr.io/team/greeter:1.2.
    reference: Reference,
    /// File to write. Default: in the current folder, named after the repository.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Require a signature by this public key. Repeatable: one of the keys is enough.
    #[arg(long, value_name = "FILE")]
    verify_key: Vec<PathBuf>,
    #[command(flatten)]
    access: Access,
}

/// Puts a module into a registry.
///
/// # Errors
/// When the file is no module, or the registry does not take it.
pub fn push(args: &PushArgs) -> anyhow::Result<ExitCode> {
    let module = &args.module;
    let bytes = fs::read(module).with_context(|| {
        let hint = match module.is_dir() {
            true => "; a folder is built to a module by `configurator build`",
            false => "",
        };
        format!("cannot read {}{hint}", module.display())
    })?;
    if let Some(digest) = args.reference.digest() {
        bail!("what is pushed gets the digest that it has: name a tag instead of {digest}");
    }
    let key = args
        .sign_key
        .as_ref()
        .map(|file| signing_key(file))
        .transpose()?;
    let about = about(&bytes, module)?;
    let registry = registry(&args.reference, &args.access)?;
    let component = Digest::of(&bytes).to_string();
    let artifact = block_on(async {
        let artifact = registry.push(bytes, &about).await?;
        if let Some(key) = &key {
            registry.sign(&artifact, key).await?;
        }
        Ok(artifact)
    })?;
    let artifact = artifact.map_err(|error| {
        let hint = match &error {
            RegistryError::Missing => "; the registry may want the repository to be made first",
            RegistryError::Failing { .. } => {
                "; where that stays so, the registry may have no space left"
            }
            _ => "",
        };
        named(&error, &registry, hint)
    })?;
    let signed = if key.is_some() { ", signed" } else { "" };
    anstream::println!("{NAME}{}{NAME:#}{signed}", args.reference);
    anstream::println!("{FAINT}manifest{FAINT:#} {}", artifact.digest());
    anstream::println!("{FAINT}module  {FAINT:#} {component}");
    Ok(ExitCode::SUCCESS)
}

/// Gets a module from a registry.
///
/// # Errors
/// When the registry does not give it, it is not signed by who has to sign, or the file cannot be written.
pub fn pull(args: &PullArgs) -> anyhow::Result<ExitCode> {
    let signers: Vec<Signer> = args
        .verify_key
        .iter()
        .map(|file| Ok(Signer::from_pem(&read(file)?)?))
        .collect::<anyhow::Result<_>>()?;
    let registry = registry(&args.reference, &args.access)?;
    let pulled = block_on(async {
        let artifact = registry.artifact().await?;
        verify(&registry, &artifact, &signers).await?;
        let bytes = registry.component(&artifact).await?;
        Ok((artifact, bytes))
    });
    let (artifact, bytes) = pulled?.map_err(|error| named(&error, &registry, ""))?;
    let name = args
        .reference
        .repository()
        .rsplit('/')
        .next()
        .unwrap_or("module");
    let output = args.output.clone();
    let output = output.unwrap_or_else(|| PathBuf::from(format!("{name}.wasm")));
    write(&output, &bytes).map_err(|error| unwritten(&output, error))?;
    anstream::println!("{NAME}{}{NAME:#}", output.display());
    anstream::println!("{FAINT}manifest{FAINT:#} {}", artifact.digest());
    anstream::println!("{FAINT}module  {FAINT:#} {}", artifact.component());
    Ok(ExitCode::SUCCESS)
}

async fn verify(
    registry: &Registry,
    artifact: &Artifact,
    signers: &[Signer],
) -> Result<(), RegistryError> {
    if signers.is_empty() {
        return Ok(());
    }
    let digest = artifact.digest();
    let signatures = registry.signatures(artifact, signers).await?;
    match is_signed(&digest, &signatures, signers) {
        true => Ok(()),
        false => Err(RegistryError::Refused(format!(
            "none of its {} signatures is by the owner of a key that was given",
            signatures.len()
        ))),
    }
}

/// What a person who looks at the registry is told. What is no module is not pushed.
fn about(bytes: &[u8], file: &Path) -> anyhow::Result<About> {
    let guest = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        ..GuestOptions::default()
    })?;
    let module = guest.load_blocking(bytes, &file.display().to_string())?;
    let said = metadata::of(bytes);
    Ok(About {
        name: said.name,
        version: said.version,
        revision: said.revision,
        created: Timestamp::now().to_string(),
        imports: module.imports().to_vec(),
        exports: vec![format!(
            "configurator:handler/handler@{}",
            module.world_version()
        )],
    })
}

fn registry(reference: &Reference, access: &Access) -> anyhow::Result<Registry> {
    let ca = access.ca.iter().map(|file| {
        let authority = Authority::from_pem(read(file)?.as_bytes());
        authority.with_context(|| file.display().to_string())
    });
    let options = RegistryOptions {
        ca: ca.collect::<anyhow::Result<_>>()?,
        // The person who runs this command names the registry, and can connect to any address anyway.
        reach: Reach::Anywhere,
        plain_http: match access.plain_http {
            true => vec![reference.resolve_registry().to_owned()],
            false => Vec::new(),
        },
    };
    let login = match &access.username {
        Some(name) => {
            let mut password = String::new();
            std::io::stdin().read_to_string(&mut password)?;
            Login::basic(name, password.trim_end_matches(['\r', '\n']))
        }
        None => stored_login(reference)?.unwrap_or_else(Login::anonymous),
    };
    Ok(Registry::new(reference.clone(), login, &options)?)
}

/// What `docker login` or `podman login` left; the first file that has a login for the registry counts.
fn stored_login(reference: &Reference) -> anyhow::Result<Option<Login>> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let docker = folder("DOCKER_CONFIG").or_else(|| Some(folder("HOME")?.join(".docker")));
    let files = [
        folder("REGISTRY_AUTH_FILE"),
        docker.map(|folder| folder.join("config.json")),
        folder("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
    ];
    for file in files.into_iter().flatten() {
        let Ok(text) = fs::read(&file) else {
            continue;
        };
        match Login::of(&text, reference.registry(), reference.repository()) {
            Ok(None) => {}
            Ok(login) => return Ok(login),
            Err(error @ LoginError::Elsewhere { .. }) => bail!(
                "{}: {error}: log in with --username, or write the login to a file of its own and name that in REGISTRY_AUTH_FILE",
                file.display()
            ),
            Err(error) => return Err(error).context(file.display().to_string()),
        }
    }
    Ok(None)
}

fn signing_key(file: &Path) -> anyhow::Result<SigningKey> {
    let password = std::env::var("COSIGN_PASSWORD").unwrap_or_default();
    let key = SigningKey::from_pem(&read(file)?, &password);
    key.with_context(|| file.display().to_string())
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn write(output: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = output.with_added_extension(format!("{}.part", std::process::id()));
    let written = fs::write(&aside, bytes).and_then(|()| fs::rename(&aside, output));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

fn unwritten(output: &Path, error: std::io::Error) -> anyhow::Error {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let (kind, output) = (error.kind(), output.display());
    let error = anyhow::Error::new(error);
    error.context(match kind {
        StorageFull | QuotaExceeded | FileTooLarge => {
            format!("no space is left for {output}: free some, or name another place by --output")
        }
        _ => format!("cannot write {output}"),
    })
}

fn block_on<T>(
    asked: impl Future<Output = Result<T, RegistryError>>,
) -> anyhow::Result<Result<T, RegistryError>> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    Ok(runtime.block_on(asked))
}

/// The error says which name it is about, and what to do: where a login is missing or is not enough, or else this.
fn named(error: &RegistryError, registry: &Registry, hint: &str) -> anyhow::Error {
    let reference = registry.reference();
    let log_in = format!(
        "log in with `docker login {}`, or give --username",
        reference.registry()
    );
    let hint = match (error, registry.has_login()) {
        (RegistryError::Unauthorized | RegistryError::Forbidden, false) => format!("; {log_in}"),
        (RegistryError::Unauthorized, true) => {
            format!("; the login that there is was not taken: {log_in}")
        }
        (RegistryError::Forbidden, true) => {
            "; the login that there is has it not: ask the owner of the repository for the right"
                .to_owned()
        }
        _ => hint.to_owned(),
    };
    anyhow::anyhow!("{reference}: {error}{hint}")
}
