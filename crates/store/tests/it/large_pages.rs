//! Pages of large items end early, and no item is lost by that.

use domain::{Scan, list::SCAN_FIELDS};
use store::{MAX_PAGE_BYTES, Page, scans};
use test_support::{instructions, post};

use crate::support::{list_query, record, start, walk};

fn size(page: &Page<Scan>) -> usize {
    serde_json::to_string(&page.items).unwrap().len()
}

#[tokio::test]
async fn page_of_large_scans_ends_early_and_the_next_continues() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    // Each takes 600,000 bytes of JSON: quotes are escaped.
    let posts: Vec<_> = (0..20)
        .map(|n| {
            let mut large = post(&format!("forum:{n}"), &format!("title {n}"));
            large.text = Some("\"a".repeat(200_000));
            large
        })
        .collect();
    let mut expected = record(&mut at.conn, manager, &posts).await;
    expected.sort_by_key(|name| name.scan);
    for order in ["", "post.title", "updateTime desc, name"] {
        let mut sizes = Vec::new();
        let found: Vec<Scan> = walk(async |token| {
            let list = list_query(SCAN_FIELDS, 100, token, "", order);
            let page = scans::list(&mut at.conn, manager, &list).await.unwrap();
            let all = scans::list_all(&mut at.conn, manager.namespace, &list).await;
            assert_eq!(all.unwrap().items, page.items);
            sizes.push(page.items.len());
            assert!(size(&page) <= MAX_PAGE_BYTES, "{}", size(&page));
            page
        })
        .await;
        assert_eq!(sizes, [6, 6, 6, 2], "{order}");
        let mut found: Vec<_> = found.iter().map(|scan| scan.name).collect();
        found.sort_by_key(|name| name.scan);
        assert_eq!(found, expected, "{order}");
    }
}

#[tokio::test]
async fn item_larger_than_a_page_is_a_page_of_its_own() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let mut large = post("forum:2", "large");
    large.text = Some("a".repeat(MAX_PAGE_BYTES + 1));
    let posts = [post("forum:1", "first"), large, post("forum:3", "last")];
    record(&mut at.conn, manager, &posts).await;
    let mut sizes = Vec::new();
    let found = walk(async |token| {
        let list = list_query(SCAN_FIELDS, 100, token, "", "");
        let page = scans::list(&mut at.conn, manager, &list).await.unwrap();
        sizes.push(page.items.len());
        page
    })
    .await;
    assert_eq!((found.len(), sizes), (3, vec![1, 1, 1]));
}
