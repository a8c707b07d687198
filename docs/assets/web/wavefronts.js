// SPDX-License-Identifier: MIT
// How one request to shared memory is cut into wavefronts: the rule of harness/vm/memory/banks.h.

const ROW = 128;

/** Every lane has the address of lane ^ step; a lane that takes no part agrees with any. */
const areTwins = (addresses, step) =>
  addresses.every((address, lane) => address === null || addresses[lane ^ step] === null || addresses[lane ^ step] === address);

/**
 * [[{bank, banks, lanes}]] for each group of lanes that goes together: its wavefronts, each a list
 * of accesses. `addresses` has null for lanes that take no part.
 */
export function groups(addresses, bytes, isLoad) {
  const unit = Math.max(bytes, 4);
  let size = ROW / unit;
  if (isLoad && size < 32 && (areTwins(addresses, 1) || areTwins(addresses, 2))) size *= 2;
  const found = [];
  for (let first = 0; first < 32; first += size) {
    const places = new Map(); // place in the row of banks: units in it, each with its lanes
    for (let lane = first; lane < first + size; ++lane) {
      if (addresses[lane] === null) continue;
      const value = Math.floor(addresses[lane] / unit);
      const place = value % (ROW / unit);
      const units = places.get(place) ?? new Map();
      units.set(value, [...(units.get(value) ?? []), lane]);
      places.set(place, units);
    }
    if (places.size === 0) continue;
    const wavefronts = [];
    for (const [place, units] of places) {
      [...units.values()].forEach((lanes, depth) => {
        wavefronts[depth] ??= [];
        wavefronts[depth].push({ bank: (place * unit) / 4, banks: unit / 4, lanes });
      });
    }
    found.push(wavefronts);
  }
  return found;
}
