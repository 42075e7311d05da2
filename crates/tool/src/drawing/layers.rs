//! Places the nodes of a graph in layers, so that edges point downward and cross little.
//!
//! Each node lies below all that lead to it. An edge goes through a place of its own in every layer in between, one of
//! which has room for its label. Within its layer a node goes to where its neighbours are.

/// Room between neighbours of a layer.
const GAP: f64 = 24.0;

/// Room between layers of nodes and layers of labels.
const LAYER_GAP: f64 = 16.0;

/// How often places are improved: few graphs change after that.
const SWEEPS: usize = 12;

/// A node as it is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Area {
    /// The middle, from the left.
    pub x: f64,
    /// The middle, from the top.
    pub y: f64,
    /// Its extents.
    pub width: f64,
    /// Its extents.
    pub height: f64,
}

/// An edge from an earlier node to a later one.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// By number.
    pub from: usize,
    /// By number.
    pub to: usize,
    /// Extents of its label.
    pub label: (f64, f64),
}

/// A graph with places.
#[derive(Debug, Default)]
pub struct Layers {
    /// Each node.
    pub nodes: Vec<Area>,
    /// For each link the points that it goes through, from the lower side of its first node to the upper side of the
    /// other one.
    pub paths: Vec<Vec<(f64, f64)>>,
    /// For each link the middle of its label.
    pub labels: Vec<(f64, f64)>,
    /// Extents of the whole.
    pub width: f64,
    /// Extents of the whole.
    pub height: f64,
}

/// A node, or the place of an edge.
struct Place {
    layer: usize,
    area: Area,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Places nodes of these extents, which are numbered so that links lead to later ones.
pub fn layers(sizes: &[(f64, f64)], links: &[Link]) -> Layers {
    let mut layer_of = vec![0; sizes.len()];
    for (node, _) in sizes.iter().enumerate() {
        let above = links.iter().filter(|link| link.to == node).map(|link| layer_of[link.from] + 2);
        // Labels have the layers between.
        layer_of[node] = above.max().unwrap_or(0);
    }
    let new = |layer, (width, height)| {
        let area = Area { width, height, ..Area::default() };
        Place { layer, area, above: Vec::new(), below: Vec::new() }
    };
    let mut places: Vec<Place> = sizes.iter().zip(&layer_of).map(|(&size, &layer)| new(layer, size)).collect();
    let mut ways: Vec<Vec<usize>> = Vec::new();
    for link in links {
        let (first, last) = (layer_of[link.from], layer_of[link.to]);
        let label_layer = label_layer(first, last);
        let mut way = vec![link.from];
        for layer in first + 1..last {
            way.push(places.len());
            places.push(new(layer, if layer == label_layer { link.label } else { (0.0, 0.0) }));
        }
        way.push(link.to);
        for pair in way.windows(2) {
            places[pair[0]].below.push(pair[1]);
            places[pair[1]].above.push(pair[0]);
        }
        ways.push(way);
    }
    let count = places.iter().map(|place| place.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    (0..places.len()).for_each(|place| rows[places[place].layer].push(place));
    order(&mut rows, &places);
    spread(&rows, &mut places);

    let mut top = 0.0;
    for row in &rows {
        let height = row.iter().map(|&place| places[place].area.height).fold(0.0, f64::max);
        row.iter().for_each(|&place| places[place].area.y = top + height / 2.0);
        top += height + LAYER_GAP;
    }
    finish(places, &ways, sizes.len(), links, top - LAYER_GAP)
}

/// The layer of the label of an edge: one between those of nodes.
fn label_layer(first: usize, last: usize) -> usize {
    ((first + last) / 2) | 1
}

/// Sorts each row by where the neighbours in the row before are, downward and upward in turn.
fn order(rows: &mut [Vec<usize>], places: &[Place]) {
    let mut at = vec![0.0; places.len()];
    let note = |row: &[usize], at: &mut [f64]| {
        row.iter().enumerate().for_each(|(index, &place)| at[place] = index as f64 - row.len() as f64 / 2.0);
    };
    rows.iter().for_each(|row| note(row, &mut at));
    for sweep in 0..SWEEPS {
        let downward = sweep % 2 == 0;
        let count = rows.len();
        for index in 0..count {
            let row = &mut rows[if downward { index } else { count - 1 - index }];
            let wish = |&place: &usize| {
                let neighbours = if downward { &places[place].above } else { &places[place].below };
                mean(neighbours.iter().map(|&other| at[other])).unwrap_or(at[place])
            };
            let mut wishes: Vec<(f64, usize)> = row.iter().map(|place| (wish(place), *place)).collect();
            wishes.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = wishes.into_iter().map(|(_, place)| place).collect();
            note(row, &mut at);
        }
    }
}

/// Gives each place an `x`: near those of its neighbours, as far as there is room.
fn spread(rows: &[Vec<usize>], places: &mut [Place]) {
    for sweep in 0..=SWEEPS {
        for index in 0..rows.len() {
            let row = &rows[if sweep % 2 == 0 { index } else { rows.len() - 1 - index }];
            let wish = |place: usize| {
                let Place { above, below, area, .. } = &places[place];
                let (up, down) = (above.iter(), below.iter());
                let neighbours: Vec<f64> = match (sweep, sweep % 2) {
                    (0, _) => Vec::new(),
                    (SWEEPS, _) => up.chain(down).map(|&other| places[other].area.x).collect(),
                    (_, 0) => up.map(|&other| places[other].area.x).collect(),
                    _ => down.map(|&other| places[other].area.x).collect(),
                };
                mean(neighbours.into_iter()).unwrap_or(area.x)
            };
            let wishes: Vec<f64> = row.iter().map(|&place| wish(place)).collect();
            let distance = |a: usize, b: usize| GAP + (places[row[a]].area.width + places[row[b]].area.width) / 2.0;
            // As far left as the wishes allow, and as far right; in the middle of both there is room too.
            let mut left = wishes.clone();
            (1..row.len()).for_each(|i| left[i] = left[i].max(left[i - 1] + distance(i - 1, i)));
            let mut right = wishes;
            (1..row.len()).rev().for_each(|i| right[i - 1] = right[i - 1].min(right[i] - distance(i - 1, i)));
            row.iter().enumerate().for_each(|(i, &place)| places[place].area.x = (left[i] + right[i]) / 2.0);
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// The result, moved so that it begins at 0.
fn finish(mut places: Vec<Place>, ways: &[Vec<usize>], nodes: usize, links: &[Link], height: f64) -> Layers {
    let left = places.iter().map(|place| place.area.x - place.area.width / 2.0).fold(f64::INFINITY, f64::min);
    places.iter_mut().for_each(|place| place.area.x -= left);
    let width = places.iter().map(|place| place.area.x + place.area.width / 2.0).fold(0.0, f64::max);
    let path = |way: &Vec<usize>| {
        let (first, last) = (way[0], way[way.len() - 1]);
        let point = |&place: &usize| {
            let area = places[place].area;
            let to_side = area.height / 2.0;
            (
                area.x,
                area.y
                    + if place == first {
                        to_side
                    } else if place == last {
                        -to_side
                    } else {
                        0.0
                    },
            )
        };
        way.iter().map(point).collect()
    };
    let label = |(way, link): (&Vec<usize>, &Link)| {
        let (first, last) = (places[link.from].layer, places[link.to].layer);
        let area = places[way[label_layer(first, last) - first]].area;
        (area.x, area.y)
    };
    Layers {
        nodes: places[..nodes].iter().map(|place| place.area).collect(),
        paths: ways.iter().map(path).collect(),
        labels: ways.iter().zip(links).map(label).collect(),
        width,
        height: height.max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (f64, f64) = (60.0, 20.0);

    fn link(from: usize, to: usize) -> Link {
        Link { from, to, label: (40.0, 10.0) }
    }

    fn apart(a: &Area, b: &Area) -> bool {
        (a.x - b.x).abs() >= (a.width + b.width) / 2.0 || (a.y - b.y).abs() >= (a.height + b.height) / 2.0
    }

    #[test]
    fn edges_lead_down_and_nothing_overlaps() {
        let links = [link(0, 1), link(0, 2), link(0, 3), link(1, 4), link(2, 4), link(3, 4), link(0, 4), link(4, 5)];
        let placed = layers(&[SIZE; 7], &links);
        for link in &links {
            let (from, to) = (placed.nodes[link.from], placed.nodes[link.to]);
            assert!(from.y + 20.0 < to.y, "{} to {}", link.from, link.to);
        }
        let labels = placed.labels.iter().map(|&(x, y)| Area { x, y, width: 40.0, height: 10.0 });
        let all: Vec<Area> = placed.nodes.iter().copied().chain(labels).collect();
        for (index, a) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|b| apart(a, b)), "{index} overlaps: {all:?}");
            assert!(a.x - a.width / 2.0 > -0.01 && a.x + a.width / 2.0 < placed.width + 0.01);
        }
    }

    #[test]
    fn a_chain_is_straight() {
        let placed = layers(&[SIZE; 3], &[link(0, 1), link(1, 2)]);
        assert!(placed.nodes.iter().all(|node| (node.x - placed.nodes[0].x).abs() < 0.01));
        assert_eq!(placed.paths[0].len(), 3);
        assert!(layers(&[], &[]).nodes.is_empty());
    }
}
