// Details, pins, and what listens.
let pinned = null;

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child != null));
  return element;
}

// What is shown of something: a title, and names with values.
function details(of) {
  if (of.type === 'column') return detailsOfColumn(columns[of.id]);
  if (of.type === 'cell') return detailsOfCell(cells[of.id]);
  if (of.type === 'band') return detailsOfBand(bands[of.id]);
  if (of.type === 'run') return detailsOfRun(of.run);
  return detailsOfExtent(extents[of.id]);
}
function sizes(item) { return [['in the file', exact(item.bytes)], ['of the file', percent(item.bytes, file.bytes)], ['uncompressed', exact(item.raw)], ['ratio', ratio(item.raw, item.bytes)]]; }
function nulls(item) { return ['nulls', item.nulls == null ? 'not known' : item.nulls === 0 ? '0' : `${count(item.nulls)} (${percent(item.nulls, item.values)})`]; }
function names(ids, all) { return ids.map((id) => all[id]).join(', ') || '–'; }
function detailsOfColumn(one) {
  const has = (number, what) => [what, number === 0 ? 'none' : `${count(number)} of ${plural(bands.reduce((sum, band) => sum + band.count, 0) * (one.merged || 1), 'chunk')}`];
  return { title: one.label, kind: one.merged ? 'columns drawn as one' : 'column', rows: [['type', one.merged ? null : one.type], ['logical type', one.logical], ...sizes(one), ['codec', names(one.codecs, data.codecs)], ['encodings', names(one.encodings, data.encodings)], ['encrypted', one.encrypted ? 'yes' : null], ['values', count(one.values)], nulls(one), ['NaNs', one.nans == null ? null : count(one.nans)], ['min', one.min], ['max', one.max], has(one.with[0], 'column indexes'), has(one.with[1], 'offset indexes'), has(one.with[2], 'Bloom filters')], parts: one.cells };
}
function detailsOfCell(cell) {
  const pages = cell.extents.filter(isPage);
  const dictionary = pages.filter((page) => page.kind === DICTIONARY).reduce((sum, page) => sum + page.bytes, 0);
  return { title: columns[cell.column].label, kind: `${cell.chunks === 1 ? 'column chunk' : plural(cell.chunks, 'column chunk')} of ${bands[cell.band].label}`, rows: [...sizes(cell), ['offset', count(cell.offset)], ['codec', cell.codec == null ? 'several' : data.codecs[cell.codec]], ['encodings', names(cell.encodings, data.encodings)], ['values', count(cell.values)], nulls(cell), ['min', cell.min], ['max', cell.max], ['pages', pages.length ? count(pages.length) : 'not drawn'], ['dictionary', dictionary ? `${exact(dictionary)}, ${percent(dictionary, cell.bytes)}` : null], ['column index', cell.columnIndex ? exact(cell.columnIndex) : 'none'], ['offset index', cell.offsetIndex ? exact(cell.offsetIndex) : 'none'], ['Bloom filter', cell.bloom ? exact(cell.bloom) : columns[cell.column].with[2] ? 'not here' : 'none']], parts: cell.extents };
}
function detailsOfBand(band) {
  const mine = cells.slice(band.id * columns.length, (band.id + 1) * columns.length);
  return { title: band.label, kind: band.count > 1 ? 'row groups drawn as one' : 'row group', rows: [['first row', count(band.first_row)], ['rows', `${count(band.rows)} (${percent(band.rows, file.rows)})`], ...sizes(band), ['bytes a row', band.rows ? (band.bytes / band.rows).toFixed(1) : '–'], ['column chunks', count(mine.reduce((sum, cell) => sum + cell.chunks, 0))]], parts: mine };
}
function detailsOfRun(run) {
  const parts = extents.slice(run.first, run.last + 1).reduce((sum, extent) => sum + extent.parts, 0);
  return { title: KINDS[run.extent.kind], kind: meaning(run.extent.kind), rows: [['bytes', exact(run.bytes)], ['of the file', percent(run.bytes, file.bytes)], ['offset', count(run.offset)], ['parts', parts > 1 ? count(parts) : null]] };
}
function detailsOfExtent(extent) {
  const { cell } = extent;
  const rows = [['offset', count(extent.offset)], ['bytes', exact(extent.bytes)], ['of the file', percent(extent.bytes, file.bytes)]];
  if (isPage(extent)) {
    rows.push(['header', size(extent.header)], ['uncompressed', exact(extent.raw)], ['ratio', ratio(extent.raw, extent.bytes - extent.header)], ['encoding', extent.encoding == null ? '–' : data.encodings[extent.encoding]], [extent.kind === DICTIONARY ? 'entries' : 'values', count(extent.values)]);
    if (extent.kind !== DICTIONARY) rows.push(['nulls', extent.nulls == null ? 'not counted' : count(extent.nulls)]);
    if (extent.firstRow != null) rows.push(['rows', `${extent.rows == null ? '' : `${count(extent.rows)} `}from ${count(extent.firstRow)}`]);
    rows.push(['min', extent.min], ['max', extent.max]);
    rows.push(['version', extent.kind === DATA ? '1' : extent.kind === DATA_V2 ? '2' : null], ['CRC', extent.crc ? 'yes' : 'no']);
  }
  if (extent.parts > 1) rows.push(['parts', count(extent.parts)]);
  if (cell) rows.push(['column', columns[cell.column].label], ['row group', bands[cell.band].label.replace(/^row groups? /, '')]);
  return { title: isPage(extent) ? `page ${count(extent.number)}` : KINDS[extent.kind], kind: isPage(extent) ? KINDS[extent.kind] : meaning(extent.kind), rows };
}
function meaning(kind) {
  return { [COLUMN_INDEX]: 'bounds of the pages of a column chunk', [OFFSET_INDEX]: 'positions of the pages of a column chunk', [BLOOM]: 'which values may be in a column chunk', [FOOTER]: 'schema, row groups, statistics', [TAIL]: 'the end of the file', [MAGIC]: 'the start of the file', [GAP]: 'bytes that nothing refers to: padding', [CHUNK]: 'pages that are not drawn singly' }[kind] || '';
}

function listOf({ rows }) {
  const list = make('dl', {});
  for (const [name, text, more] of rows) if (text != null) list.append(make('dt', {}, name), make('dd', { title: more || '' }, String(text)));
  return list;
}
function showDetails() {
  const aside = document.getElementById('details');
  aside.className = pinned ? '' : 'empty';
  if (!pinned) {
    const keys = file.keys.map(([key, bytes, text]) => [key, text === '' || text.length > 60 ? size(bytes) : text, text]);
    aside.replaceChildren(make('h3', {}, 'Details'), make('p', { className: 'quiet' }, 'Point at a part to see what it is; click pins it here.'), listOf({ rows: [['sorted by', sorting() || 'not stated'], ['encryption', file.encryption], ...keys] }));
    return;
  }
  const shown = details(pinned);
  aside.replaceChildren(make('h3', {}, shown.title), make('p', { className: 'quiet' }, shown.kind));
  if (shown.parts && shown.parts.length > 1 && shown.parts.length <= 2000) {
    const strip = make('div', { className: 'strip' });
    for (const part of shown.parts) {
      const piece = make('i', {});
      piece.style.flex = `${Math.max(part.bytes, 0.001)} 0 0`;
      paint(piece, part.type === 'cell' ? encodingColour(mainEncoding(part)) : extentColour(part));
      strip.append(piece);
    }
    aside.append(strip);
  }
  const zoom = make('button', { type: 'button' }, 'Zoom there');
  zoom.addEventListener('click', revealPinned);
  const free = make('button', { type: 'button' }, 'Unpin');
  free.addEventListener('click', () => pin(null));
  const tools = make('p', {}, zoom, ' ', free);
  tools.style.marginTop = '10px';
  aside.append(listOf(shown), tools);
}
function pin(of) {
  pinned = of;
  showDetails();
  later(map, tree, grid);
  table.draw();
}
function revealPinned() {
  if (!pinned) return;
  const shown = map.shown();
  if (shown) map.reveal(shown.item);
  else if (pinned.type === 'extent') map.reveal(extents[pinned.id]);
  else if (pinned.type === 'column') {
    const cell = columns[pinned.id].cells.find((one) => one.extents.length);
    if (cell) map.reveal({ offset: cell.extents[0].offset, bytes: Math.max(cell.bytes, 1) });
  }
  document.getElementById('map').scrollIntoView({ block: 'nearest' });
}

// Drawing is put off to the next frame, once.
const waiting = new Set();
function later(...views) {
  if (!waiting.size) requestAnimationFrame(() => { const now = [...waiting]; waiting.clear(); for (const view of now) view.draw(); });
  for (const view of views) waiting.add(view);
}

function tip(event, of) {
  const box = document.getElementById('tip');
  box.hidden = !of;
  if (!of) return;
  const shown = details(of);
  const rows = shown.rows.filter(([, text]) => text != null).slice(0, 7);
  box.replaceChildren(make('b', {}, shown.title), make('span', { className: 'quiet' }, shown.kind), ...rows.map(([name, text]) => make('div', {}, make('span', { className: 'quiet' }, `${name} `), String(text))));
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  box.style.top = `${event.clientY + 18 + height > innerHeight ? Math.max(6, event.clientY - height - 12) : event.clientY + 18}px`;
}

function listen(id, view) {
  const canvas = document.getElementById(id);
  const at = (event) => { const { left, top } = canvas.getBoundingClientRect(); return view.hit(event.clientX - left, event.clientY - top); };
  let drag = null;
  canvas.addEventListener('pointermove', (event) => {
    if (drag && view === map && Math.abs(event.clientX - drag.x) > 4) {
      drag.moved = true;
      canvas.setPointerCapture(event.pointerId);
      map.go(drag.from - ((event.clientX - drag.x) / map.width) * (map.to - map.from), map.to - map.from);
      tip(event, null);
    } else if (!drag) tip(event, at(event));
  });
  canvas.addEventListener('pointerdown', (event) => { drag = { x: event.clientX, from: map.from, moved: false }; });
  canvas.addEventListener('pointerup', () => { setTimeout(() => { drag = null; }); });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('pointerleave', (event) => tip(event, null));
  canvas.addEventListener('click', (event) => { if (!(drag && drag.moved)) pin(at(event)); });
  canvas.addEventListener('dblclick', (event) => { const of = at(event); if (of) { pin(of); revealPinned(); } });
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (view.key(event)) event.preventDefault();
  });
}

// What is not drawn as it is in the file.
function notes() {
  const { groups_of_band: together, columns_single: single, columns_merged: merged, pages_max: most, indexed_pages_max: indexed, single_indexes_max: indexes, overlapping_bytes: overlap, elsewhere, faults } = data.notes;
  const all = [];
  if (together > 1) all.push(`Row groups are drawn together, ${count(together)} at a time, because there are ${count(file.row_groups)}.`);
  if (merged) all.push(`The ${count(single)} largest columns are drawn singly; ${plural(merged, 'smaller column')} are drawn as one.`);
  if (file.chunks_unlisted) all.push(`Pages of ${plural(file.chunks_unlisted, 'column chunk')} are not drawn singly: at most ${count(most)} pages are, and none if column chunks are drawn together.`);
  if (indexed) all.push(`The rows and bounds of pages are left out: they are shown of at most ${count(indexed)} pages.`);
  if (indexes) all.push(`Indexes and Bloom filters are drawn together, whatever column chunk they belong to: they are drawn singly in files of at most ${count(indexes)} column chunks.`);
  if (overlap) all.push(`The footer gives ${size(overlap)} to more than one part, or puts them outside the file.`);
  if (elsewhere) all.push(`${plural(elsewhere, 'column chunk')} in other files: not drawn.`);
  return all.concat(faults.map((fault) => `Broken: ${fault}`));
}
function sorting() {
  if (file.sorted_by == null) return 'differs by row group';
  return file.sorted_by.map(([path, descending, nullsFirst]) => `${path}${descending ? ' descending' : ''}${nullsFirst ? ' nulls first' : ''}`).join(', ');
}
function overview() {
  document.getElementById('name').textContent = file.name;
  const facts = [file.writer ? `written by ${file.writer}` : 'writer not named', `format version ${file.version}`, sorting() ? `sorted by ${sorting()}` : null, file.encryption ? `encrypted (${file.encryption})` : null];
  document.getElementById('facts').textContent = facts.filter(Boolean).join(' · ');
  const tile = (name, text, more) => make('div', {}, make('dt', {}, name), make('dd', {}, text, more ? make('small', {}, more) : null));
  const indexes = extents.filter((one) => one.kind === COLUMN_INDEX || one.kind === OFFSET_INDEX || one.kind === BLOOM).reduce((sum, one) => sum + one.bytes, 0);
  const rowsOf = bands.length && file.row_groups ? `${count(Math.round(file.rows / file.row_groups))} rows each` : null;
  document.getElementById('tiles').append(
    tile('Size', size(file.bytes), `${count(file.bytes)} bytes`), tile('Rows', count(file.rows), file.rows ? `${file.bytes / file.rows < 1000 ? (file.bytes / file.rows).toFixed(1) : count(Math.round(file.bytes / file.rows))} bytes a row` : null),
    tile('Row groups', count(file.row_groups), rowsOf), tile('Columns', count(file.columns), plural(file.chunks, 'column chunk')),
    tile('Pages', file.pages ? count(file.pages) : '–', file.chunks_unlisted ? 'not all are drawn' : file.pages ? `${size(Math.round(file.compressed_bytes / file.pages))} on average` : null),
    tile('Compression', ratio(file.uncompressed_bytes, file.compressed_bytes), `${size(file.uncompressed_bytes)} uncompressed`),
    tile('Indexes, filters', indexes ? size(indexes) : 'none', indexes ? percent(indexes, file.bytes) : null), tile('Footer', size(file.footer_bytes), percent(file.footer_bytes, file.bytes)));
  for (const note of notes()) document.getElementById('notes').append(make('li', {}, note));
}

// Bytes by use: encodings of data pages, dictionaries, everything beside them.
function uses() {
  const sums = new Map();
  for (const extent of extents) {
    const encoding = extent.kind === DATA || extent.kind === DATA_V2 ? extent.encoding : extent.kind === CHUNK && extent.cell ? mainEncoding(extent.cell) : null;
    const name = encoding != null ? data.encodings[encoding] : extent.kind === MAGIC || extent.kind === TAIL ? 'footer' : extent.kind === CHUNK ? 'data' : KINDS[extent.kind];
    const sum = sums.get(name) || { bytes: 0, parts: 0, first: extent, colour: extentColour(extent) };
    if (extent.kind === FOOTER) Object.assign(sum, { first: extent, colour: extentColour(extent) });
    sum.bytes += extent.bytes;
    sum.parts += extent.parts;
    sums.set(name, sum);
  }
  const all = [...sums].sort((a, b) => b[1].bytes - a[1].bytes);
  const bar = document.getElementById('uses');
  const legend = document.getElementById('legend');
  bar.replaceChildren();
  legend.replaceChildren();
  bar.setAttribute('aria-label', all.map(([name, { bytes }]) => `${name} ${percent(bytes, file.bytes)}`).join(', '));
  for (const [name, { bytes, first, colour }] of all) {
    const piece = make('i', { title: `${name}: ${exact(bytes)}` });
    piece.style.flex = `${bytes} 0 0`;
    paint(piece, colour);
    bar.append(piece);
    const swatch = make('i', { className: 'swatch' });
    paint(swatch, colour);
    const button = make('button', { type: 'button', title: 'Shows the first of them' }, swatch, make('b', {}, name), make('span', { className: 'quiet' }, `${size(bytes)} · ${percent(bytes, file.bytes)}`));
    button.addEventListener('click', () => { map.pin(2, first); map.reveal(first, 3); });
    legend.append(make('li', {}, button));
  }
}

overview();
uses();
showDetails();
map.draw(); tree.draw(); grid.draw(); table.fill();
listen('map', map); listen('tree', tree); listen('grid', grid);
document.getElementById('map').addEventListener('wheel', (event) => {
  const { left } = event.currentTarget.getBoundingClientRect();
  if (event.ctrlKey || event.metaKey) map.zoom(event.deltaY > 0 ? 1.25 : 0.8, map.from + ((event.clientX - left) / map.width) * (map.to - map.from));
  else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) map.go(map.from + (event.deltaX / map.width) * (map.to - map.from), map.to - map.from);
  else return;
  event.preventDefault();
}, { passive: false });
document.getElementById('in').addEventListener('click', () => map.zoom(0.5));
document.getElementById('out').addEventListener('click', () => map.zoom(2));
document.getElementById('all').addEventListener('click', () => map.go(0, Math.max(file.bytes, 1)));
document.getElementById('tree-by').addEventListener('change', () => later(tree));
document.getElementById('grid-by').addEventListener('change', () => later(grid));
document.getElementById('filter').addEventListener('input', () => { document.getElementById('scroll').scrollTop = 0; table.fill(); });
document.getElementById('order').addEventListener('change', () => { document.getElementById('scroll').scrollTop = 0; table.fill(); });
document.getElementById('scroll').addEventListener('scroll', () => later(table));
document.getElementById('scroll').addEventListener('keydown', (event) => { if (table.key(event)) event.preventDefault(); });
document.querySelector('#columns tbody').addEventListener('click', (event) => { const row = event.target.closest('tr'); if (row && row.column) pin({ type: 'column', id: row.column.id }); });
document.querySelector('#columns tbody').addEventListener('dblclick', revealPinned);
document.addEventListener('keydown', (event) => { if (event.key === 'Escape') pin(null); });
const again = () => { uses(); showDetails(); later(map, tree, grid, table); };
isDark.addEventListener('change', again);
new ResizeObserver(() => later(map, tree, grid)).observe(document.getElementById('views'));
document.documentElement.dataset.drawn = 'yes';
