//! What pods of a hub or an agent need and where they run, as every command that installs them takes it.

use clap::{Args, ValueEnum};
use ocm_api::operator::{ResourceQosClass, ResourceRequirement};
use ocm_core::Failure;
use ocm_core::order::Collect as _;
use ocm_core::resources::{AmountList, Amounts, ResourcesError, requirement};
use ocm_core::scheduling::{self, Scheduling, SchedulingError};

/// `--resource-qos-class`, `--resource-limits` and `--resource-requests`.
#[derive(Args, Clone, Debug, Default)]
pub struct ResourceArgs {
    /// How much CPU and memory the pods ask for [default: Default at first]
    #[arg(long, value_enum, value_name = "CLASS", help_heading = "Resources")]
    pub resource_qos_class: Option<QosWord>,
    /// Limits of each container, with --resource-qos-class ResourceRequirement
    #[arg(long, value_name = "NAME=AMOUNT,...", value_delimiter = ',', help_heading = "Resources")]
    pub resource_limits: Vec<String>,
    /// Requests of each container, with --resource-qos-class ResourceRequirement
    #[arg(long, value_name = "NAME=AMOUNT,...", value_delimiter = ',', help_heading = "Resources")]
    pub resource_requests: Vec<String>,
}

/// Words of `--resource-qos-class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QosWord {
    /// The operator's own small requests, no limits
    #[value(name = "Default", alias = "default")]
    Default,
    /// Neither requests nor limits
    #[value(name = "BestEffort", alias = "besteffort")]
    BestEffort,
    /// What --resource-limits and --resource-requests say
    #[value(name = "ResourceRequirement", alias = "resourcerequirement")]
    ResourceRequirement,
}

/// `--node-selector` and `--tolerations`.
#[derive(Args, Clone, Debug, Default)]
pub struct NodeArgs {
    /// Labels of the nodes on which the pods run, those of the operator, too; replaces what was typed before
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', help_heading = "Resources")]
    pub node_selector: Vec<String>,
    /// Taints that the pods tolerate, those of the operator, too, as kubectl taint writes them; replaces what is there
    #[arg(long, value_name = "KEY[=VALUE]:EFFECT,...", value_delimiter = ',', help_heading = "Resources")]
    pub tolerations: Vec<String>,
}

impl ResourceArgs {
    /// What the operator is told; none: nothing was typed.
    ///
    /// # Errors
    /// A usage failure for amounts that cannot be read, or do not go with the class.
    pub fn requirement(self) -> Result<Option<ResourceRequirement>, Failure> {
        let Self { resource_qos_class, resource_limits, resource_requests } = self;
        let class = resource_qos_class.map(|word| match word {
            QosWord::Default => ResourceQosClass::Default,
            QosWord::BestEffort => ResourceQosClass::BestEffort,
            QosWord::ResourceRequirement => ResourceQosClass::ResourceRequirement,
        });
        let limits = amounts("--resource-limits", &resource_limits)?;
        let requests = amounts("--resource-requests", &resource_requests)?;
        requirement(class, &limits, &requests).map_err(failure)
    }
}

fn amounts(flag: &str, pairs: &[String]) -> Result<Amounts, Failure> {
    let amount = |pair: &String| match pair.split_once('=') {
        Some((name, amount)) if !name.is_empty() && !amount.is_empty() => Ok((name.to_owned(), amount.to_owned())),
        _ => Err(Failure::usage(format!("{flag} {pair:?} is not NAME=AMOUNT"))),
    };
    pairs.iter().map(amount).try_collect_map()
}

fn failure(error: ResourcesError) -> Failure {
    match error {
        ResourcesError::ClassWithoutAmounts => {
            Failure::usage("--resource-limits and --resource-requests need another class of resources")
                .hint("add: --resource-qos-class ResourceRequirement")
        }
        ResourcesError::NoAmounts => {
            Failure::usage("--resource-qos-class ResourceRequirement needs --resource-limits or --resource-requests")
        }
        ResourcesError::NotAnAmount { list, name, text } => {
            let flag = match list {
                AmountList::Limits => "--resource-limits",
                AmountList::Requests => "--resource-requests",
            };
            Failure::usage(format!("{flag} {name}={text}: {text:?} is not an amount such as 200m or 64Mi"))
        }
        ResourcesError::AboveLimit { name, request, limit } => {
            Failure::usage(format!("the request of {name}, {request}, is above its limit, {limit}"))
        }
    }
}

impl NodeArgs {
    /// Where the pods run, with this PriorityClass.
    ///
    /// # Errors
    /// A usage failure for what is no label and no taint.
    pub fn scheduling(self, priority_class: Option<String>) -> Result<Scheduling, Failure> {
        let Self { node_selector, tolerations } = self;
        let wrong = |flag: &str, text: &str, form: &str, error: SchedulingError| {
            let failure = Failure::usage(format!("{flag} {text:?} is not {form}"));
            if error == SchedulingError::Form { failure } else { failure.because(error) }
        };
        let label =
            |text: &String| scheduling::label(text).map_err(|error| wrong("--node-selector", text, "KEY=VALUE", error));
        let toleration = |text: &String| {
            scheduling::toleration(text).map_err(|error| wrong("--tolerations", text, "KEY[=VALUE]:EFFECT", error))
        };
        Ok(Scheduling {
            node_selector: node_selector.iter().map(label).try_collect_map()?,
            tolerations: tolerations.iter().map(toleration).collect::<Result<_, _>>()?,
            priority_class,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_said_with_the_flag_that_was_typed() {
        let text = "much".to_owned();
        let failure = failure(ResourcesError::NotAnAmount { list: AmountList::Requests, name: "cpu".to_owned(), text });
        assert!(failure.message.starts_with("--resource-requests cpu=much: "), "{failure}");
        let limits = ResourceArgs { resource_limits: vec!["cpu".to_owned()], ..ResourceArgs::default() };
        assert_eq!(limits.requirement().unwrap_err().message, "--resource-limits \"cpu\" is not NAME=AMOUNT");
        let nodes = NodeArgs { node_selector: vec!["infra".to_owned()], tolerations: Vec::new() };
        assert_eq!(nodes.scheduling(None).unwrap_err().message, "--node-selector \"infra\" is not KEY=VALUE");
        let nodes = NodeArgs { node_selector: Vec::new(), tolerations: vec!["infra:Never".to_owned()] };
        let failure = nodes.scheduling(None).unwrap_err();
        assert!(failure.message.starts_with("--tolerations \"infra:Never\" is not KEY"), "{failure}");
        assert!(failure.causes[0].contains("NoSchedule"), "{failure}");
    }

    #[test]
    fn what_was_not_typed_says_nothing() {
        assert_eq!(ResourceArgs::default().requirement(), Ok(None));
        assert_eq!(NodeArgs::default().scheduling(None), Ok(Scheduling::default()));
    }
}
