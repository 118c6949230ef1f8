/* main.c - lifecycle as a program. */
#include "message.h"

int main(int argc, char **argv)
{
	return lifecycle_main(argc, argv);
}
