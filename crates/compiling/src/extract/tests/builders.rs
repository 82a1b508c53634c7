//! Pages of common site builders as their servers send them, before any script has run.

use super::{read, text};

macro_rules! page {
    ($name:literal) => {
        read(include_str!(concat!("builders/", $name, ".html")))
    };
}

#[test]
fn pages_of_common_builders_are_read_as_they_are_sent() {
    for (page, heading, wanted) in [
        (
            page!("wordpress-elementor"),
            "Blankets that outlive sofas",
            "We weave throws and bed blankets from Cheviot wool on looms of 1951.\nNeed a width for a narrowboat bunk? Send us the measurements.\n",
        ),
        (
            page!("wix"),
            "Grooming without the stress",
            "One dog at a time, no cages, and as many breaks as a nervous puppy needs.\nBook a wash\n",
        ),
        (
            page!("squarespace"),
            "Throw your first bowl",
            "Evening classes at the wheel for beginners, eight people at most, glaze and firing included.\nAn apron and short fingernails.\n",
        ),
        (
            page!("shopify"),
            "Gravel fork, carbon",
            "Clears a 45 mm tyre, takes mudguards and three bottle cages, and weighs 420 grams.\nSteerer\ntapered, 1.5 inch\n",
        ),
        (
            page!("next-client"),
            "For small warehouses",
            "Stock counts on the phone\nCount a warehouse with the phones that your people carry, offline and in four languages.\nNo scanner guns, no licences for each seat, no training.\n",
        ),
        (
            page!("next-streamed"),
            "Berths, booked in a minute",
            "Harbour masters see every free berth, and skippers pay before they moor.\nA flat fee for each harbour, with no share of the mooring fees.\n",
        ),
        (
            page!("nuxt-client"),
            "",
            "Wir knüpfen Kletternetze für Spielplätze und Schulen, geprüft nach EN 1176.\n",
        ),
        (
            page!("webflow"),
            "Labels in runs of fifty",
            "Waterproof labels for bottles and cans, printed from your drawing and sent the next day.\nThe glue holds for a day in melting ice.\n",
        ),
        (
            page!("weebly"),
            "Maths tutors who come to you",
            "Weekly lessons at your kitchen table, from times tables to further mathematics. Every tutor has taught in a school.\n",
        ),
        (
            page!("aspnet"),
            "Running rigging, spliced to length",
            "We splice halyards and sheets in our loft, and post them within two days. Bring the old rope and we copy it.\n",
        ),
        (
            page!("react-shell"),
            "",
            "Send letters on real paper from any browser, folded, stamped and posted the same day.\n",
        ),
        (
            page!("blogger"),
            "Catching a swarm with a cardboard box",
            "A swarm hung in the pear tree, so I shook it into a box and propped it open with a stick. By dusk all of them were inside.\n",
        ),
    ] {
        let headings: Vec<_> = page.headings.iter().map(|h| h.text.as_str()).collect();
        assert_eq!(
            headings.contains(&heading),
            !heading.is_empty(),
            "{headings:?}"
        );
        assert!(
            text(&page).ends_with(wanted),
            "{}: {}",
            page.title,
            text(&page)
        );
        for not in ["Skip to", "Your cart", "password", "menu", "Powered", "Ian"] {
            assert!(
                !text(&page).contains(not),
                "{}: {}",
                page.title,
                text(&page)
            );
        }
    }
    assert_eq!(page!("squarespace").site_name, "Kiln & Clay");
}
