//! `kubectl ocm addon proxy-config`: from arguments to the flow.

use std::path::Path;
use std::sync::Arc;

use ocm_cli::{ApplyArgs, OutputArgs, PlanView, Ui, files, options};
use ocm_core::addon::Place;
use ocm_core::addon::proxy::{CONFIG_NAME, ProxyOptions, Setting, is_no_proxy};
use ocm_core::join::proxy::ProxyUrl;
use ocm_core::plan::Mode;
use ocm_core::{Event, Exit, Failure, Narrator, certificate};
use ocm_flows::addons::{self, ProxyRequest, Target};
use ocm_kube::{Connection, ManagedArgs, connect};

use crate::args::{PlaceArgs, ProxyConfigArgs};
use crate::view;

pub(crate) async fn run(args: ProxyConfigArgs, connection: &Connection, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let ProxyConfigArgs {
        names,
        place: PlaceArgs { clusters, placement, default: _ },
        config,
        http_proxy,
        https_proxy,
        no_proxy,
        proxy_ca_file,
        apply: ApplyArgs { wait, plan: plan_args, output: OutputArgs { output } },
        managed,
    } = args;
    let names = options::object_names(names, "an add-on")?;
    let clusters = options::cluster_names(clusters)?;
    let placement = placement.map(|text| options::namespaced("--placement", &text)).transpose()?;
    let config = config.map(|text| options::namespaced("--config", &text)).transpose()?;
    let wait = wait.limit()?;
    let view = PlanView::new(ui.clone(), &plan_args, output)?.with_namespaces();
    let https = https_proxy.map(|url| proxy("--https-proxy", &url)).transpose()?;
    let ca = match proxy_ca_file {
        Some(path) => {
            let https = https.clone();
            Some(files::beside(move || certificates(&path, https.as_ref())).await?)
        }
        None => None,
    };
    let mut options = ProxyOptions {
        http: http_proxy.map(|url| proxy("--http-proxy", &url)).transpose()?,
        no_proxy: no_proxy.map(no_proxy_list).transpose()?,
        ca,
        https,
        services: Vec::new(),
    };
    if options.is_empty() && !managed.is_given() {
        return Err(Failure::usage("nothing is said of proxies")
            .hint("such as --https-proxy http://proxy.example:3128 --no-proxy 10.96.0.0/16"));
    }
    if options.names_user() {
        ui.tell(Event::warning(
            "whoever may read AddOnDeploymentConfigs on the hub can read user and password of the proxy",
        ));
    }
    options.services = services(&managed, &clusters, connection, &ui).await?;
    let hub = connect(connection, ui.clone()).await?;
    let target = match (clusters.is_empty(), placement) {
        (false, _) => Target::Clusters { names: clusters, config },
        (true, Some((namespace, name))) => Target::Definition {
            config: config.unwrap_or_else(|| (namespace.clone(), CONFIG_NAME.to_owned())),
            place: Place::Placement(namespace, name),
        },
        (true, None) => Target::Definition {
            place: Place::Default,
            config: config.unwrap_or_else(|| (hub.namespace.clone(), CONFIG_NAME.to_owned())),
        },
    };
    let request = ProxyRequest { names, target, options, mode: view.mode(), wait };
    let plan = addons::plan_proxy(&hub, &request, &*ui).await?;
    if view.mode() == Mode::Render {
        return view.manifests(&plan);
    }
    let applied = addons::configure_proxy(&hub, &request, &plan, &*ui, &|applied| view.row(applied)).await?;
    view::configured(&view, &ui, (request.names.as_slice(), request.wait), &applied)
}

/// What the managed cluster says of its own addresses, if it is named.
async fn services(
    managed: &ManagedArgs,
    clusters: &[String],
    connection: &Connection,
    ui: &Arc<Ui>,
) -> Result<Vec<String>, Failure> {
    if !managed.is_given() {
        return Ok(Vec::new());
    }
    let [cluster] = clusters else {
        return Err(Failure::usage("--managed-context and --managed-kubeconfig go with one cluster of --clusters")
            .hint("where clusters share their addresses, name these: --no-proxy 10.96.0.0/16"));
    };
    let managed = connect(&managed.connection(connection), ui.clone()).await?;
    ui.tell(Event::now(format!("reading the addresses of cluster {cluster:?} ({})", managed.label())));
    addons::services_of(&managed).await
}

fn proxy(flag: &str, url: &str) -> Result<Setting<ProxyUrl>, Failure> {
    if url.is_empty() {
        return Ok(Setting::Without);
    }
    ProxyUrl::parse(url).map(Setting::Is).map_err(|error| {
        Failure::usage(format!("{flag} cannot be the proxy of an agent"))
            .because(error)
            .hint(format!("such as {flag} http://proxy.example:3128; to take it away: {flag} ''"))
    })
}

fn no_proxy_list(entries: Vec<String>) -> Result<Setting<Vec<String>>, Failure> {
    let entries: Vec<String> =
        entries.iter().map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect();
    match entries.iter().find(|entry| !is_no_proxy(entry)) {
        Some(bad) => Err(Failure::usage(format!("--no-proxy: {bad:?} is no host, domain, address or network"))
            .hint("such as --no-proxy .corp.example,10.96.0.0/16")),
        None if entries.is_empty() => Ok(Setting::Without),
        None => Ok(Setting::Is(entries)),
    }
}

/// Certificates that vouch for an https proxy: the one that is said, or else the one that is there.
fn certificates(path: &Path, https: Option<&Setting<ProxyUrl>>) -> Result<Vec<Vec<u8>>, Failure> {
    if https.is_some_and(|said| !matches!(said, Setting::Is(url) if url.is_https())) {
        return Err(Failure::usage("--proxy-ca-file goes with an https --https-proxy: agents verify no other proxy")
            .hint("name the proxy, too: --https-proxy https://HOST:PORT"));
    }
    certificate::from_pem(&files::read(path, "--proxy-ca-file")?)
        .map_err(|error| Failure::usage("--proxy-ca-file cannot be used").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_proxy_takes_it_away() {
        assert_eq!(proxy("--http-proxy", ""), Ok(Setting::Without));
        assert!(matches!(proxy("--http-proxy", "http://p.example:3128"), Ok(Setting::Is(_))));
        let failure = proxy("--http-proxy", "socks5://me:s3cr@p.example").unwrap_err();
        assert!(failure.message.contains("--http-proxy") && !format!("{failure:?}").contains("s3cr"), "{failure:?}");
    }

    #[test]
    fn a_list_is_read_entry_by_entry() {
        let list = |text: &str| no_proxy_list(text.split(',').map(str::to_owned).collect());
        assert_eq!(
            list(" a.example, ,10.0.0.0/8"),
            Ok(Setting::Is(vec!["a.example".to_owned(), "10.0.0.0/8".to_owned()]))
        );
        assert_eq!(list(""), Ok(Setting::Without));
        assert!(list("http://a").unwrap_err().message.contains("\"http://a\""));
    }

    #[test]
    fn a_ca_needs_an_https_proxy() {
        let path = Path::new("/nonexistent/ca");
        for said in ["", "http://p.example:3128"] {
            let said = proxy("--https-proxy", said).unwrap();
            assert!(certificates(path, Some(&said)).unwrap_err().message.contains("goes with an https --https-proxy"));
        }
        let said = proxy("--https-proxy", "https://p.example:3129").unwrap();
        assert!(certificates(path, Some(&said)).unwrap_err().message.contains("--proxy-ca-file /nonexistent/ca"));
        assert!(certificates(path, None).unwrap_err().message.contains("--proxy-ca-file /nonexistent/ca"));
    }
}
