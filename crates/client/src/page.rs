//! Lists: their parameters, and reading page after page.

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use crate::{Client, Error};

/// Maximum page size of the service.
const PAGE_SIZE: u32 = 100;

/// Filter and order of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub filter: Option<String>,
    pub order_by: Option<String>,
    /// Default: the service's maximum.
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
}

impl Query {
    pub fn filtered(filter: impl Into<String>) -> Self {
        Self {
            filter: Some(filter.into()),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn ordered(mut self, by: impl Into<String>) -> Self {
        self.order_by = Some(by.into());
        self
    }

    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        let size = self.page_size.unwrap_or(PAGE_SIZE).to_string();
        let all = [
            ("pageSize", Some(size)),
            ("filter", self.filter.clone()),
            ("orderBy", self.order_by.clone()),
            ("pageToken", self.page_token.clone()),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Absent on the last page.
    pub next_page_token: Option<String>,
}

impl<T: DeserializeOwned> Page<T> {
    pub(crate) fn read(collection: &str, mut body: Value) -> Result<Self, Error> {
        let key = collection.rsplit('/').next().unwrap_or_default();
        let items = body.get_mut(key).map(Value::take).ok_or_else(|| {
            Error::Unexpected(serde_json::Error::custom(format!("no `{key}` in the list")))
        })?;
        let token = body.get("nextPageToken").and_then(Value::as_str);
        Ok(Self {
            items: serde_json::from_value(items).map_err(Error::Unexpected)?,
            next_page_token: token.map(str::to_owned),
        })
    }
}

/// The remaining pages of a list.
pub struct Pages<'a, T> {
    client: &'a Client,
    collection: String,
    /// `None` after the last page.
    query: Option<Query>,
    items: PhantomData<T>,
}

impl<'a, T: DeserializeOwned> Pages<'a, T> {
    pub(crate) fn new(client: &'a Client, collection: &str, query: Query) -> Self {
        Self {
            client,
            collection: collection.to_owned(),
            query: Some(query),
            items: PhantomData,
        }
    }

    /// Returns the next items, or `None` at the end. After a failure the same page can be requested again.
    ///
    /// # Errors
    /// Same as [`Client::call`].
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, Error> {
        let Some(query) = &mut self.query else {
            return Ok(None);
        };
        let page = self.client.list(&self.collection, query).await?;
        match page.next_page_token {
            Some(token) => query.page_token = Some(token),
            None => self.query = None,
        }
        Ok(Some(page.items))
    }

    /// # Errors
    /// Same as [`Client::call`].
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(items) = self.next().await? {
            all.extend(items);
        }
        Ok(all)
    }
}
