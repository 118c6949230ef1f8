/* containers.cc - kinds of memory.h: what C++'s containers have, which grow and shrink. */
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"

extern "C" const struct kind kinds[] __attribute__((visibility("default")));

template <class Container> static Container &of(struct life *l)
{
	return *static_cast<Container *>(l->own);
}

template <class Container> static void end(struct life *l)
{
	delete static_cast<Container *>(l->own);
}

/* Vectors and strings: to a size between need and limit, now and then without slack. */
template <class Container> static const char *resize(struct life *l, size_t need)
{
	Container &c = of<Container>(l);
	size_t bytes = need + life_draw(l, l->limit - need + 1);

	c.resize(bytes);
	if (life_draw(l, 3) == 0)
		c.shrink_to_fit();
	life_is_kept(l, &c[0], bytes);
	return nullptr;
}

/* Anew, in other memory while the old is still there. */
template <class Container> static const char *change(struct life *l, size_t need)
{
	if (life_draw(l, 2))
		return resize<Container>(l, need);
	Container fresh(need, '\0');

	of<Container>(l).swap(fresh);
	life_is_zero(l, &of<Container>(l)[0], need);
	return nullptr;
}

template <class Container> static const char *begin(struct life *l)
{
	l->own = new Container;
	l->bytes = 0;
	return resize<Container>(l, l->limit);
}

/* Blocks that come at one end and go at the other; the newest is the buffer. */
using Block = std::array<unsigned char, 4 << 20>;
using Blocks = std::deque<std::unique_ptr<Block>>;

static const char *change_deque(struct life *l, size_t)
{
	Blocks &blocks = of<Blocks>(l);

	while (blocks.size() > 2)
		blocks.pop_front();
	blocks.push_back(std::make_unique<Block>());	/* which makes them zero */
	life_is_zero(l, blocks.back()->data(), l->limit);
	return nullptr;
}

static const char *begin_deque(struct life *l)
{
	if (l->limit > sizeof(Block))
		return "more than a block";
	l->own = new Blocks;
	return change_deque(l, 0);
}

using Vector = std::vector<unsigned char>;

const struct kind kinds[] = {
	{"c++vector", begin<Vector>, change<Vector>, end<Vector>, nullptr, 0},
	{"c++string", begin<std::string>, change<std::string>, end<std::string>, nullptr, 0},
	{"c++deque", begin_deque, change_deque, end<Blocks>, nullptr, 0},
	{nullptr, nullptr, nullptr, nullptr, nullptr, 0},
};
