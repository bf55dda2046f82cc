// Colours (Okabe and Ito's, which colour-blind people can tell apart), patterns, canvases.
const ENCODING_COLOURS = {
  PLAIN: '#e69f00', RLE_DICTIONARY: '#0072b2', PLAIN_DICTIONARY: '#0072b2', DELTA_BINARY_PACKED: '#009e73',
  DELTA_LENGTH_BYTE_ARRAY: '#56b4e9', DELTA_BYTE_ARRAY: '#cc79a7', BYTE_STREAM_SPLIT: '#d55e00', RLE: '#f0e442',
  BIT_PACKED: '#b8a100', ALP: '#882255',
};
const KIND_COLOURS = { [COLUMN_INDEX]: '#8c6d46', [OFFSET_INDEX]: '#c9ae7f', [BLOOM]: '#7b5ea7', [FOOTER]: '#6b7480', [MAGIC]: '#3c434c', [TAIL]: '#3c434c' };
const SCALE = ['#440154', '#3b528b', '#21908c', '#5dc863', '#fde725'];
const isDark = matchMedia('(prefers-color-scheme: dark)');
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function encodingColour(number) { return (number != null && ENCODING_COLOURS[data.encodings[number]]) || '#999'; }
function extentColour(extent) {
  if (extent.kind === DICTIONARY) return stripes(isDark.matches ? '#8fc7ea' : '#00466f');
  if (extent.kind === DATA || extent.kind === DATA_V2) return encodingColour(extent.encoding);
  if (extent.kind === CHUNK) return extent.cell ? encodingColour(mainEncoding(extent.cell)) : '#999';
  if (extent.kind === GAP) return stripes('#aab2bc');
  return KIND_COLOURS[extent.kind] || '#999';
}

// A plain colour of the same use, where there is no room for stripes, and for styles.
function flat(colour) { return typeof colour === 'string' ? colour : colour.flat; }
const patterns = new Map();
function stripes(colour) {
  const key = colour + isDark.matches + devicePixelRatio;
  if (!patterns.has(key)) {
    const tile = document.createElement('canvas');
    tile.width = 6; tile.height = 6;
    const c = tile.getContext('2d');
    c.fillStyle = colour; c.fillRect(0, 0, 6, 6);
    c.strokeStyle = isDark.matches ? '#171b21' : '#fff'; c.lineWidth = 1.6;
    c.beginPath();
    for (const x of [-6, 0, 6]) { c.moveTo(x, 6); c.lineTo(x + 6, 0); }
    c.stroke();
    const pattern = c.createPattern(tile, 'repeat');
    pattern.flat = colour;
    pattern.image = `repeating-linear-gradient(135deg, ${colour} 0 3px, ${c.strokeStyle} 3px 4.6px)`;
    patterns.set(key, pattern);
  }
  return patterns.get(key);
}
function paint(element, colour) { element.style.background = typeof colour === 'string' ? colour : colour.image; }

function channels(colour) { return [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16)); }
function scaled(share) {
  const x = Math.min(1, Math.max(0, share)) * (SCALE.length - 1);
  const low = Math.min(Math.floor(x), SCALE.length - 2);
  const [a, b] = [channels(SCALE[low]), channels(SCALE[low + 1])];
  return `#${a.map((one, i) => Math.round(one + (b[i] - one) * (x - low)).toString(16).padStart(2, '0')).join('')}`;
}
// Black or white, whichever can be read on a colour.
function inkOn(colour) {
  const full = flat(colour);
  if (full.length !== 7) return '#000';
  const [r, g, b] = channels(full).map((c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? '#000' : '#fff';
}

// A canvas of a height in CSS pixels, as wide as its place.
function surface(id, height) {
  const canvas = document.getElementById(id);
  const width = canvas.clientWidth || 600;
  const dpr = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * dpr);
  canvas.height = Math.round(height * dpr);
  const c = canvas.getContext('2d');
  c.setTransform(dpr, 0, 0, dpr, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = '12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
  c.textBaseline = 'middle';
  return { canvas, c, width, height };
}
// A text in a box, if there is room, cut with an ellipsis; on stripes it gets a plate.
function label(c, text, x, y, width, ink, on) {
  if (width < 26) return;
  let shown = text;
  if (c.measureText(shown).width > width - 8) {
    let low = 0;
    let high = shown.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(`${shown.slice(0, middle)}…`).width <= width - 8) low = middle; else high = middle - 1;
    }
    if (low < 2) return;
    shown = `${shown.slice(0, low)}…`;
  }
  if (on && typeof on !== 'string') {
    c.fillStyle = style('--card');
    c.fillRect(x + 1, y - 9, c.measureText(shown).width + 6, 18);
    ink = style('--ink');
  }
  c.fillStyle = ink;
  c.fillText(shown, x + 4, y);
}
function frame(c, x, y, width, height) {
  c.lineWidth = 3.5; c.strokeStyle = style('--card'); c.strokeRect(x, y, Math.max(width, 2), height);
  c.lineWidth = 1.8; c.strokeStyle = style('--ink'); c.strokeRect(x, y, Math.max(width, 2), height);
}
// The entry of a sorted list of {offset, bytes} that holds a byte.
function holding(list, byte) {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle].offset <= byte) low = middle; else high = middle - 1;
  }
  return low;
}
