// Scripts of the console: times in the browser's zone, the sum of selected payments, and live
// updates of the overview. All pages work without it.
'use strict';
(() => {
  const two = (n) => String(n).padStart(2, '0');
  const local = (root) => {
    for (const el of root.querySelectorAll('time[datetime]')) {
      const d = new Date(el.dateTime);
      if (Number.isNaN(d.getTime())) continue;
      el.textContent = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
    }
  };
  const yuan = (fen) => {
    const digits = String(fen).padStart(3, '0');
    return '¥' + digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',') + '.' + digits.slice(-2);
  };
  const ticks = () => {
    const form = document.getElementById('bulk');
    const out = form && form.querySelector('[data-selected]');
    if (!out) return;
    const all = form.querySelector('[data-all]');
    const boxes = [...form.querySelectorAll('input[name=id]')];
    const show = () => {
      const chosen = boxes.filter((b) => b.checked);
      const sum = chosen.reduce((total, b) => total + BigInt(b.dataset.fen), 0n);
      out.textContent = out.dataset.template.replace('%n', String(chosen.length)).replace('%s', yuan(sum));
      all.checked = chosen.length > 0 && chosen.length === boxes.length;
      all.indeterminate = chosen.length > 0 && chosen.length < boxes.length;
    };
    all.addEventListener('change', () => { for (const b of boxes) b.checked = all.checked; show(); });
    form.addEventListener('change', show);
    show();
  };
  // Server-sent events update the overview. While events arrive, the page's own polling (htmx,
  // every 15 s) is suppressed.
  const live = () => {
    const root = () => document.getElementById('live');
    if (!root() || !root().dataset.stream || !window.EventSource) return;
    const fresh = 12000;
    let source = null, heard = 0;
    const put = ({ id, version, html }) => {
      const place = document.getElementById(id);
      if (!place || place.dataset.version === version) return;
      const was = new Map([...place.querySelectorAll('[data-key]')].map((el) => [el.dataset.key, el.textContent]));
      const open = [...place.querySelectorAll('details[open]')].map((el) => el.id);
      const scrolled = [...place.querySelectorAll('.scroll')].map((el) => el.scrollTop);
      const focus = place.contains(document.activeElement) ? document.activeElement : null;
      const nth = focus ? [...place.querySelectorAll(focus.localName)].indexOf(focus) : -1;
      place.innerHTML = html;
      place.dataset.version = version;
      for (const detail of open) if (detail && document.getElementById(detail)) document.getElementById(detail).open = true;
      place.querySelectorAll('.scroll').forEach((el, i) => { el.scrollTop = scrolled[i] || 0; });
      for (const el of place.querySelectorAll('[data-key]')) if (was.has(el.dataset.key) && was.get(el.dataset.key) !== el.textContent) el.classList.add('changed');
      const again = focus && place.querySelectorAll(focus.localName)[nth];
      if (again) again.focus({ preventScroll: true });
    };
    const close = () => { if (source) source.close(); source = null; heard = 0; if (root()) delete root().dataset.live; };
    const open = () => {
      if (source || document.hidden) return;
      source = new EventSource(root().dataset.stream);
      const hear = () => { heard = Date.now(); root().dataset.live = 'on'; };
      source.addEventListener('here', hear);
      source.addEventListener('part', (e) => { put(JSON.parse(e.data)); hear(); });
      source.addEventListener('over', () => { close(); htmx.trigger(root(), 'ask'); }); // the session has ended; another cookie may still be valid
      source.addEventListener('error', () => { if (source && source.readyState === EventSource.CLOSED) close(); else if (root()) delete root().dataset.live; });
    };
    const mine = (e) => e.detail.target && e.detail.target.id === 'live';
    document.body.addEventListener('htmx:beforeRequest', (e) => { if (mine(e) && Date.now() - heard < fresh) e.preventDefault(); });
    document.body.addEventListener('htmx:afterRequest', (e) => { if (mine(e) && e.detail.successful) open(); });
    document.addEventListener('visibilitychange', () => { if (document.hidden) close(); else open(); });
    window.addEventListener('pagehide', close);
    window.addEventListener('pageshow', open);
    open();
  };
  // Keeps open details, input and focus when htmx replaces content.
  const keep = () => {
    const key = (el) => el.form && [el.form.getAttribute('action'), [...el.form.elements].indexOf(el)].join(' ');
    const fields = () => new Map([...document.querySelectorAll('main form')].flatMap((f) => [...f.elements]).map((el) => [key(el), el]));
    // Changed fields, and those of a form that is shown again, with its Idempotency-Key.
    const written = () => [...document.querySelectorAll('main textarea, main input[name=key]')].filter((el) => el.value !== el.defaultValue || 'sent' in el.dataset);
    let had = null;
    // Keeps the page and its input when the session has ended; a notice is shown instead of a redirect.
    document.body.addEventListener('htmx:beforeOnLoad', (e) => {
      if (e.detail.xhr.status !== 401 || !written().length) return;
      e.preventDefault();
      document.getElementById('ended').hidden = false;
    });
    document.body.addEventListener('htmx:beforeSwap', () => {
      const at = document.activeElement;
      had = {
        open: [...document.querySelectorAll('details[open][id]')].map((el) => el.id),
        written: written().map((el) => ({ el, key: key(el), text: el.value })),
        at, key: at && key(at), from: at && at.selectionStart, to: at && at.selectionEnd,
      };
    });
    document.body.addEventListener('htmx:afterSwap', () => {
      if (!had) return;
      const now = fields();
      for (const id of had.open) if (document.getElementById(id)) document.getElementById(id).open = true;
      for (const { el, key, text } of had.written) {
        if (el.isConnected || !now.has(key)) continue;
        now.get(key).value = text;
        if ('sent' in el.dataset) now.get(key).dataset.sent = '';
      }
      const again = had.at && !had.at.isConnected && now.get(had.key);
      if (again) {
        again.focus({ preventScroll: true });
        if (again.localName === 'textarea') again.setSelectionRange(had.from, had.to);
      }
      had = null;
    });
  };
  // Keeps input across a change of language, which reloads the page. The tab's session storage
  // holds it until the next page; a staff key is never stored.
  const carry = () => {
    const form = document.querySelector('form[action="/language"]');
    const name = 'typed', kinds = ['textarea', 'text', 'search', 'date'];
    const fields = () => [...document.querySelectorAll('main form')].flatMap((f) => [...f.elements].map((el, i) => ({ el, key: [f.getAttribute('action'), i, el.name].join(' ') })))
      .filter(({ el }) => kinds.includes(el.type) || el.type === 'hidden' && el.name === 'key' && 'sent' in el.dataset);
    let had = null;
    try {
      had = JSON.parse(sessionStorage.getItem(name));
      sessionStorage.removeItem(name);
    } catch { return; } // storage is disabled
    if (form) form.addEventListener('submit', () => {
      const written = fields().filter(({ el }) => el.value !== el.defaultValue || 'sent' in el.dataset);
      const texts = written.map(({ el, key }) => ({ key, text: el.value, sent: 'sent' in el.dataset }));
      if (texts.length) sessionStorage.setItem(name, JSON.stringify({ path: form.elements.back.value, texts }));
    });
    if (!had || had.path !== location.pathname + location.search) return;
    const now = new Map([...document.querySelectorAll('main form')].flatMap((f) => [...f.elements].map((el, i) => [[f.getAttribute('action'), i, el.name].join(' '), el])));
    for (const { key, text, sent } of had.texts) {
      const el = now.get(key);
      if (!el) continue;
      el.value = text;
      if (sent) el.dataset.sent = '';
      if (el.closest('details')) el.closest('details').open = true;
    }
  };
  // Converts times before the content is painted. The event of htmx comes later, and the wrong zone would be visible.
  const watch = new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) if (node.nodeType === Node.ELEMENT_NODE) local(node.parentElement || node);
  });
  document.addEventListener('DOMContentLoaded', () => { local(document); ticks(); live(); keep(); carry(); watch.observe(document.body, { childList: true, subtree: true }); });
})();
