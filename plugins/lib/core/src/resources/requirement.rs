//! Amounts of CPU and memory: which go with each other and with their class.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use ocm_api::operator::{ResourceQosClass, ResourceRequirement};

use super::quantity;
use crate::order::Collect as _;

/// Amounts, by the names of resources.
pub type Amounts = BTreeMap<String, String>;

/// Why CPU and memory cannot be as they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourcesError {
    /// Amounts are given for a class of resources that has none.
    ClassWithoutAmounts,
    /// The class of resources needs amounts.
    NoAmounts,
    /// An amount of CPU, memory or the like cannot be read.
    NotAnAmount {
        /// In which list it stands.
        list: AmountList,
        /// Of which resource.
        name: String,
        /// What was given.
        text: String,
    },
    /// More is asked for than allowed.
    AboveLimit {
        /// Of which resource.
        name: String,
        /// What is asked for.
        request: String,
        /// What is allowed.
        limit: String,
    },
}

/// A list of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountList {
    /// What a container may use.
    Limits,
    /// What a container asks for.
    Requests,
}

/// What an operator is told of CPU and memory; none: nothing was typed.
///
/// # Errors
/// Amounts that cannot be read, contradict each other, or do not go with the class.
pub fn requirement(
    class: Option<ResourceQosClass>,
    limits: &Amounts,
    requests: &Amounts,
) -> Result<Option<ResourceRequirement>, ResourcesError> {
    let own = class.as_ref() == Some(&ResourceQosClass::ResourceRequirement);
    let amounts = !limits.is_empty() || !requests.is_empty();
    if amounts && !own {
        return Err(ResourcesError::ClassWithoutAmounts);
    }
    if own && !amounts {
        return Err(ResourcesError::NoAmounts);
    }
    let amount = |list: AmountList, name: &str, text: &str| {
        let error = || ResourcesError::NotAnAmount { list, name: name.to_owned(), text: text.to_owned() };
        quantity::parse(text).ok_or_else(error)
    };
    for (name, text) in limits {
        let limit = amount(AmountList::Limits, name, text)?;
        if let Some(request) = requests.get(name)
            && amount(AmountList::Requests, name, request)? > limit
        {
            let (request, limit) = (request.clone(), text.clone());
            return Err(ResourcesError::AboveLimit { name: name.clone(), request, limit });
        }
    }
    for (name, text) in requests {
        amount(AmountList::Requests, name, text)?;
    }
    let list = |amounts: &Amounts| {
        let all = amounts.iter().map(|(name, text)| (name.clone(), Quantity(text.clone())));
        (!amounts.is_empty()).then(|| all.collect_map())
    };
    let required = ResourceRequirements { limits: list(limits), requests: list(requests), ..Default::default() };
    let resource_requirements = own.then_some(required);
    Ok(class.map(|class| ResourceRequirement { type_: Some(class), resource_requirements }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cpu(text: &str) -> Amounts {
        [("cpu".to_owned(), text.to_owned())].into()
    }

    #[test]
    fn amounts_go_with_their_class_and_fit_each_other() {
        use ResourcesError as Error;
        let none = Amounts::new();
        assert_eq!(requirement(None, &cpu("1"), &none), Err(Error::ClassWithoutAmounts));
        assert_eq!(requirement(Some(ResourceQosClass::Default), &none, &cpu("1")), Err(Error::ClassWithoutAmounts));
        let own = |limits: &Amounts, requests: &Amounts| {
            requirement(Some(ResourceQosClass::ResourceRequirement), limits, requests).unwrap_err()
        };
        assert_eq!(own(&none, &none), Error::NoAmounts);
        let (name, list) = ("cpu".to_owned(), AmountList::Requests);
        let unreadable = Error::NotAnAmount { list, name: name.clone(), text: "much".to_owned() };
        assert_eq!(own(&none, &cpu("much")), unreadable);
        let above = Error::AboveLimit { name, request: "1".to_owned(), limit: "100m".to_owned() };
        assert_eq!(own(&cpu("100m"), &cpu("1")), above);
    }

    #[test]
    fn what_was_typed_is_said_as_operators_take_it() {
        let none = Amounts::new();
        assert_eq!(requirement(None, &none, &none), Ok(None));
        let small = requirement(Some(ResourceQosClass::BestEffort), &none, &none).unwrap();
        assert_eq!(json!(small), json!({"type": "BestEffort"}));
        let own = requirement(Some(ResourceQosClass::ResourceRequirement), &cpu("1"), &cpu("100m")).unwrap();
        let amounts = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}});
        assert_eq!(json!(own), json!({"type": "ResourceRequirement", "resourceRequirements": amounts}));
        let only = requirement(Some(ResourceQosClass::ResourceRequirement), &none, &cpu("100m")).unwrap();
        assert_eq!(json!(only)["resourceRequirements"], json!({"requests": {"cpu": "100m"}}));
    }
}
