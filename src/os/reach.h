/*
 * reach - reading what one owns, whatever its mode
 *
 * A command in a sandbox that an ordinary user started can make files and folders of mode 000 in
 * the upper folder: they are the user's, and closed to him. To open them he would have to change
 * their modes, in sight of the sandbox. In a user namespace of our own the kernel lets us read
 * them (CAP_DAC_READ_SEARCH counts for files whose owner and group the namespace maps), and
 * nothing more: our id stays mapped to itself, all other capabilities are given up.
 */
#pragma once

/*
 * For a process of one thread that is about to read a layer; root needs it not. 0, or a negative
 * errno where no user namespace can be had: then what is closed stays closed, and is said to be.
 */
int reach_own_files(void);
