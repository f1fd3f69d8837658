"""A card as a measurement needs it: load a cubin, place buffers, launch, and time what was launched.

    card       what a card is, which target's images it runs, and the interface that measurements ask
    cuda       the interface by the CUDA driver, through an optional package

Whoever times something asks for a `Device` and gets one that he need not know, so that everything but the driver
itself is proven without a card.  Left out: streams, several cards at once, parameters that are not pointers.
"""
