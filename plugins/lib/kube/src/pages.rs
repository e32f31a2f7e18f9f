//! Lists that are read page by page: what there may be thousands of does not fit in one answer.

use kube::api::ListParams;
use kube::core::ObjectList;

/// Lists page by page, each of at most `limit` objects, and keeps what is wanted of each. `list` asks for one page.
///
/// # Errors
/// The first error of `list`: a part of a list is none.
pub async fn paged<K, T, E, F>(
    mut params: ListParams,
    limit: impl Fn() -> u32,
    list: impl Fn(ListParams) -> F,
    wanted: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, E>
where
    K: Clone,
    F: Future<Output = Result<ObjectList<K>, E>>,
{
    let mut items = Vec::new();
    loop {
        params = params.limit(limit());
        let page = list(params.clone()).await?;
        items.extend(page.items.into_iter().filter_map(&wanted));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(items),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::{Value, json};

    use super::*;

    /// A page with these items, and the token of the next one.
    fn page(items: &[u32], next: Option<&str>) -> ObjectList<u32> {
        let metadata = next.map_or_else(|| json!({}), |next| json!({"continue": next}));
        let page: Value = json!({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items});
        serde_json::from_value(page).unwrap()
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end_with_the_same_selectors() {
        let asked = RefCell::new(Vec::new());
        let list = |params: ListParams| {
            asked.borrow_mut().push(params.clone());
            std::future::ready(match params.continue_token.as_deref() {
                None => Ok(page(&[1, 2], Some("b"))),
                Some("b") => Ok(page(&[3, 4], Some("c"))),
                Some("c") => Ok(page(&[5], Some(""))),
                Some(other) => Err(other.to_owned()),
            })
        };
        let params = ListParams::default().labels("l=x").fields("f=y");
        let odd = |item: u32| (item % 2 == 1).then_some(item * 10);
        assert_eq!(paged(params, || 2, list, odd).await, Ok(vec![10, 30, 50]));
        let asked = asked.into_inner();
        assert_eq!(asked.len(), 3);
        for params in asked {
            assert_eq!((params.limit, params.label_selector.as_deref()), (Some(2), Some("l=x")));
            assert_eq!(params.field_selector.as_deref(), Some("f=y"));
        }
    }

    #[tokio::test]
    async fn a_part_of_a_list_is_no_list() {
        let list = |params: ListParams| {
            std::future::ready(match params.continue_token {
                None => Ok(page(&[1], Some("b"))),
                Some(_) => Err("gone"),
            })
        };
        assert_eq!(paged(ListParams::default(), || 1, list, Some).await, Err("gone"));
    }
}
