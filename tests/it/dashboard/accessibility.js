// The rules of accessibility that a program can check, on the page as it is drawn now. Returns a sentence for each offence.
(() => {
    const found = [];
    const report = (element, what) => found.push(`${what}: ${element.outerHTML.slice(0, 160)}`);
    const all = (selector) => [...document.querySelectorAll(selector)];
    const isDrawn = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
    const drawn = (selector) => all(selector).filter(isDrawn);
    const textOf = (id) => document.getElementById(id)?.textContent.trim() ?? "";

    // What a screen reader calls an element. A placeholder is no name.
    function nameOf(element) {
        const by = element.getAttribute("aria-labelledby");
        if (by) return by.split(/\s+/).map(textOf).join(" ").trim();
        const label = element.getAttribute("aria-label")?.trim();
        if (label) return label;
        const labels = [...(element.labels ?? [])].map((it) => it.textContent.trim()).join(" ").trim();
        return labels || (element.matches("input, select, textarea") ? "" : element.textContent.trim());
    }

    // The page.
    if (!document.documentElement.lang) found.push("the page has no language");
    if (!document.title.trim()) found.push("the page has no title");
    if (/user-scalable=no|maximum-scale/.test(document.querySelector("meta[name=viewport]")?.content ?? "")) {
        found.push("the page cannot be enlarged");
    }
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth > clientWidth) {
        const within = (it) => it.parentElement.closest(".scroll, pre");
        const wide = drawn("body *").filter((it) => !within(it) && it.getBoundingClientRect().right > clientWidth + 1);
        found.push(`the page is ${scrollWidth} wide in a window of ${clientWidth}: ${wide.at(-1)?.outerHTML.slice(0, 160)}`);
    }

    // IDs, and what refers to them.
    const ids = all("[id]").map((it) => it.id);
    ids.filter((id, index) => !id || ids.indexOf(id) !== index).forEach((id) => found.push(`the ID ${id} is not unique`));
    for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
        for (const element of all(`[${name}]`)) {
            const missing = element.getAttribute(name).split(/\s+/).some((id) => !document.getElementById(id));
            if (missing) report(element, `${name} refers to nothing`);
        }
    }

    // Landmarks: one main part, one banner at most, names for those of one sort, and everything within some.
    if (drawn("main").length !== 1) found.push(`${drawn("main").length} main parts`);
    if (drawn("header:not(main *)").length > 1) found.push("several banners");
    for (const sort of ["nav", "form[role=search]"]) {
        const names = drawn(sort).map(nameOf);
        if (names.some((name) => !name)) found.push(`a ${sort} without a name`);
        if (new Set(names).size !== names.length) found.push(`several ${sort} with one name: ${names.join(", ")}`);
    }
    for (const child of [...document.body.children].filter(isDrawn)) {
        if (!child.matches("main, header, nav, footer, aside, script, a.skip")) report(child, "outside of the landmarks");
    }

    // Headings: one of the first level, and no level is left out.
    const levels = drawn("h1, h2, h3, h4, h5, h6").map((it) => [Number(it.tagName[1]), it]);
    if (levels.filter(([level]) => level === 1).length !== 1) found.push("not exactly one heading of the first level");
    levels.forEach(([level, it], index) => {
        if (!it.textContent.trim()) report(it, "an empty heading");
        if (level > (levels[index - 1]?.[0] ?? 0) + 1) report(it, "a heading that leaves out a level");
    });

    // Controls and links have names, and are large enough to be hit.
    const controls = drawn("a[href], button, input:not([type=hidden]), select, textarea, summary");
    for (const control of controls) {
        if (!nameOf(control)) report(control, "no name");
        const { width, height } = control.getBoundingClientRect();
        const isInText = control.matches("a[href]") && getComputedStyle(control).display === "inline";
        if (!isInText && !control.closest(".skip") && (width < 24 || height < 24)) {
            report(control, `only ${Math.round(width)} × ${Math.round(height)} pixels to hit`);
        }
    }
    drawn("img, svg[role=img]").filter((it) => !it.hasAttribute("alt") && !nameOf(it)).forEach((it) => report(it, "no alternative text"));
    drawn("form").filter((it) => !it.querySelector("button, input[type=submit]")).forEach((it) => report(it, "no button"));

    // The keyboard: no order of its own, nothing focusable is hidden, and whatever scrolls can be focused and has a name.
    drawn("[tabindex]").filter((it) => it.tabIndex > 0).forEach((it) => report(it, "an order of focus of its own"));
    all("[aria-hidden=true] :is(a, button, input, select)").forEach((it) => report(it, "focusable and hidden"));
    for (const element of drawn("main *")) {
        const { overflowX, overflowY } = getComputedStyle(element);
        const scrolls =
            (/auto|scroll/.test(overflowX) && element.scrollWidth > element.clientWidth) ||
            (/auto|scroll/.test(overflowY) && element.scrollHeight > element.clientHeight);
        if (scrolls && element.tabIndex < 0) report(element, "scrolls, and a keyboard cannot scroll it");
    }
    drawn("[role=region]").filter((it) => !nameOf(it)).forEach((it) => report(it, "a region without a name"));

    // Tables and lists.
    for (const table of drawn("table")) {
        const heads = [...table.querySelectorAll("th")];
        if (!table.querySelector("thead th")) report(table, "a table without headers");
        heads.filter((it) => !["col", "row"].includes(it.scope)).forEach((it) => report(it, "a header without a scope"));
        heads.filter((it) => !it.textContent.trim()).forEach((it) => report(it, "an empty header"));
        const widths = new Set([...table.rows].map((row) => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0)));
        if (widths.size > 1) report(table, "rows of different widths");
    }
    drawn("ul > *, ol > *").filter((it) => it.tagName !== "LI").forEach((it) => report(it, "not an item in a list"));
    drawn("dl > *").filter((it) => !it.matches("div, dt, dd")).forEach((it) => report(it, "not a fact in a list of them"));

    // Contrast: 4.5 for text, 3 for large text and for the borders of fields.
    const parse = (color) => {
        const parts = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
        return { rgb: parts.slice(0, 3), alpha: parts[3] ?? 1 };
    };
    const over = (front, back) => front.rgb.map((it, index) => it * front.alpha + back[index] * (1 - front.alpha));
    const luminance = (rgb) => {
        const linear = rgb.map((it) => it / 255).map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
        return linear[0] * 0.2126 + linear[1] * 0.7152 + linear[2] * 0.0722;
    };
    const contrast = (one, other) => {
        const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
    };
    function backgroundOf(element) {
        if (!element) return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
        const color = parse(getComputedStyle(element).backgroundColor);
        return color.alpha === 1 ? color.rgb : over(color, backgroundOf(element.parentElement));
    }
    const seen = new Set();
    const check = (element, color, back, least, what) => {
        const ratio = contrast(over(parse(color), back), back);
        const key = `${color} on ${back.map(Math.round)}`;
        if (ratio >= least || seen.has(key)) return;
        seen.add(key);
        report(element, `${what} with a contrast of ${ratio.toFixed(2)} (${key})`);
    };
    for (const element of drawn("body *")) {
        const style = getComputedStyle(element);
        const hasText = [...element.childNodes].some((it) => it.nodeType === Node.TEXT_NODE && it.textContent.trim());
        const size = parseFloat(style.fontSize);
        const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        if (hasText) check(element, style.color, backgroundOf(element), isLarge ? 3 : 4.5, "text");
        if (element.matches("input:not([type=hidden]), select, textarea")) {
            const placeholder = getComputedStyle(element, "::placeholder");
            if (element.placeholder) check(element, placeholder.color, backgroundOf(element), 4.5, "a placeholder");
            check(element, style.borderTopColor, backgroundOf(element.parentElement), 3, "a border");
        }
    }

    // Motion stops for those who ask for that.
    if (matchMedia("(prefers-reduced-motion: reduce)").matches && document.getAnimations().length > 0) found.push("something moves");
    return found;
})();
